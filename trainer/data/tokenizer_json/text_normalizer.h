// The normalizer of a tokenizer.json: what changes a text before it is cut into words.
//
// A const TextNormalizer is thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/data/text/regular_expression.h"
#include "trainer/data/text/unicode.h"
#include "trainer/data/tokenizer_json/character_map.h"
#include "trainer/data/tokenizer_json/json_members.h"

namespace farstep {

class TextNormalizer {
 public:
  // Reads the member "normalizer". Takes null, Sequence, NFC, NFD, NFKC, NFKD, Prepend, Strip,
  // Precompiled, and Replace of a fixed text or an expression. Throws DataError for others.
  explicit TextNormalizer(const JsonValue& json);

  bool is_identity() const { return steps_.empty(); }
  // Whether a text may be cut between a letter and a space or newline: what its parts become makes
  // what the whole becomes. Normal forms allow it there, and so do replacements of one character.
  // Strip, Precompiled and expressions look at what lies on both sides, or at a text's ends.
  bool may_cut() const;
  // Whether it puts something before each text.
  bool prepends() const;
  // Returns the normalised text. What goes before a text is left out unless `begins_text`. Throws
  // DataError if a step makes far more bytes of the text than any language needs.
  std::string operator()(std::string_view text, bool begins_text) const;

 private:
  struct Prepend {
    std::string text;
  };
  struct Replace {
    std::string from, to;
  };
  struct ReplaceMatches {
    RegularExpression expression;
    std::string to;
  };
  struct Strip {
    bool left, right;
  };

  void add(const JsonValue& json, int depth);
  void add_replace(const JsonValue& json);

  std::vector<std::variant<NormalForm, Prepend, Replace, ReplaceMatches, Strip, CharacterMap>>
      steps_;
};

}  // namespace farstep
