// The normalizer of a tokenizer.json: what changes a text before it is cut into words.
//
// A const TextNormalizer is thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/data/text/unicode.h"
#include "trainer/data/tokenizer_json/json_members.h"

namespace farstep {

class TextNormalizer {
 public:
  // Reads the member "normalizer". Takes null, Sequence, NFC, NFD, NFKC, NFKD, Prepend, and Replace
  // of a fixed text. Throws DataError for others.
  explicit TextNormalizer(const JsonValue& json);

  bool is_identity() const { return steps_.empty(); }
  // Whether it puts something before each text.
  bool prepends() const;
  // Returns the normalised text. What goes before a text is left out unless `begins_text`.
  std::string operator()(std::string_view text, bool begins_text) const;

 private:
  struct Prepend {
    std::string text;
  };
  struct Replace {
    std::string from, to;
  };

  void add(const JsonValue& json, int depth);

  std::vector<std::variant<NormalForm, Prepend, Replace>> steps_;
};

}  // namespace farstep
