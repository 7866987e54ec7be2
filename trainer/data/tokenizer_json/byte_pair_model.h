// The model of a tokenizer.json: a vocabulary, and the merges that make its tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/data/tokenizer_json/json_members.h"

namespace farstep {

struct BytePairModel {
  struct Merge {
    int32_t left = 0, right = 0, merged = 0;
  };

  // Reads the member "model". Throws DataError for other models than BPE, and for parts of it that
  // are not supported.
  explicit BytePairModel(const JsonValue& json);

  std::unordered_map<std::string, int32_t> vocabulary;
  std::vector<Merge> merges;       // the first one comes first
  std::optional<int32_t> unknown;  // the token of characters that have none
  bool fuses_unknown = false;      // neighbours share one
  bool byte_fallback = false;      // such characters become tokens of bytes, "<0x0A>"
  bool ignores_merges = false;     // where a whole word is a token
};

}  // namespace farstep
