// SentencePiece's table of normalization rules, each a text and what takes its place. In a
// tokenizer.json it is the normalizer Precompiled.
//
// A const CharacterMap is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/text/bounded_text.h"

namespace farstep {

class CharacterMap {
 public:
  // Reads the table as SentencePiece writes it: the size of a double array in bytes, the array, and
  // the texts of its values, each ended by a zero. Throws DataError for another content.
  explicit CharacterMap(std::string_view content);

  // Returns a valid text as Hugging Face's `tokenizers` changes it. A grapheme of up to five bytes
  // becomes the value of the shortest rule that it begins with. Otherwise each character does.
  // Throws DataError beyond the limit of `result`, to which it is added.
  std::string by_graphemes(std::string_view text, BoundedText result = BoundedText()) const;
  // Returns it as SentencePiece changes it, by the longest rule at each place.
  std::string by_longest_rules(std::string_view text) const;

  // Calls `take` with every rule. Throws DataError if there are more than a table can have.
  void for_each_rule(
      const std::function<void(const std::string& text, std::string_view value)>& take) const;

 private:
  struct Match {
    std::size_t bytes = 0;
    std::string_view value;
  };

  // Returns the shortest or longest rule that the text begins with.
  std::optional<Match> match(std::string_view text, bool longest) const;
  // Follows a byte from the node at `place`; nullopt if no rule goes on so.
  std::optional<std::size_t> next(std::size_t place, unsigned char byte) const;
  // Returns the value of a rule that ends at the node; nullopt if none does.
  std::optional<std::string_view> value_at(std::size_t place) const;
  std::size_t children_of(std::size_t place) const;

  std::vector<uint32_t> units_;
  std::string values_;
};

}  // namespace farstep
