// The added tokens of a tokenizer.json: fixed texts with ids of their own, found before all else.
//
// A const AddedTokens is thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/pieces/literal_set.h"
#include "trainer/data/tokenizer_json/json_members.h"
#include "trainer/data/tokenizer_json/text_normalizer.h"

namespace farstep {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // only where it is no part of a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // found in the normalised text, not in the text as it is
  bool special = false;      // has no text when it is decoded
  bool is_left = false;      // its name in a text stays text
};

// A part of a text: a token, or text that is none.
struct TextPart {
  static constexpr int32_t kNoToken = -1;

  std::string_view text;
  int32_t token = kNoToken;
};

class AddedTokens {
 public:
  // Reads the member "added_tokens".
  AddedTokens(const JsonValue& json, const TextNormalizer& normalizer);

  const std::vector<AddedToken>& all() const { return tokens_; }

  // Leaves the names of all special tokens, or of one token, in every text.
  void leave_special();
  void leave(int32_t id);

  // Replaces `parts` by the parts of `text`, of tokens that are normalised or of those that are
  // not. Returns how many names were left in the text.
  int64_t split(std::string_view text, bool normalized, std::vector<TextPart>& parts) const;
  // Whether a text may be cut between a letter and a space or newline without a change of its
  // tokens. It must be a letter in the normalised text too.
  bool may_cut() const { return may_cut_; }

 private:
  std::vector<AddedToken> tokens_;
  LiteralSet as_it_is_, normalized_;  // by index in tokens_
  bool may_cut_ = true;
};

}  // namespace farstep
