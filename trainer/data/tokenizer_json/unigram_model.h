// The model Unigram of a tokenizer.json: pieces, each with a score.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/tokenizer_json/json_members.h"

namespace farstep {

struct UnigramModel {
  struct Piece {
    std::string text;
    double score = 0;
  };

  // Reads the member "model" of the type Unigram. Throws DataError for what is no such model.
  explicit UnigramModel(const JsonValue& json);

  // Returns what a character counts that is no piece.
  double unknown_score() const;

  std::vector<Piece> pieces;       // by id
  std::optional<int32_t> unknown;  // the id of characters that are no pieces
  bool byte_fallback = false;      // such characters become pieces of bytes, "<0x0A>"
};

}  // namespace farstep
