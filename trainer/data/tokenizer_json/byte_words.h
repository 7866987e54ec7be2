// Byte-pair encoding of words by their bytes, as GPT-2 has it: every byte is a token, so every word
// has ids.
//
// A const ByteWords is thread-safe, but for the cache.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/data/pieces/merges.h"
#include "trainer/data/pieces/word_cache.h"
#include "trainer/data/tokenizer_json/byte_pair_model.h"

namespace farstep {

// Returns the bytes that a token stands for. tokenizer.json writes bytes that are no printable
// ASCII or Latin-1 as characters from U+0100 on: "\u0120" is a space. A token with any other
// character stands for itself.
std::string bytes_of_token(const std::string& token);

class ByteWords {
 public:
  explicit ByteWords(const BytePairModel& model);

  // Appends the ids of a word. Throws DataError for a byte that has no token.
  void encode(std::string_view word, WordCache& cache, std::vector<int32_t>& ids) const;

 private:
  void encode_new(std::string_view word, std::vector<int32_t>& ids) const;

  Merges merges_;
  std::array<int32_t, 256> bytes_;  // -1 is none
  std::optional<int32_t> unknown_;
  bool fuses_unknown_;
  // Tokens that are whole words whatever the merges say, by their bytes; empty if there are none.
  std::unordered_map<std::string, int32_t> whole_;
};

}  // namespace farstep
