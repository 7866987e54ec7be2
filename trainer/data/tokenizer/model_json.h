// The members "model" and "pre_tokenizer" of a tokenizer.json, made of a SentencePiece model's
// pieces.
//
// Pure functions; thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "trainer/data/tokenizer/sentencepiece_file.h"

namespace farstep {

struct ModelJson {
  nlohmann::json model, pre_tokenizer = nullptr;
  std::string fault;  // what the file has no words for; empty: nothing
};

// Returns those of a byte-pair model that is plain.
ModelJson byte_pair_json(const SentencePieceFile& file);

// Returns those of a Unigram model whose pieces are usual.
ModelJson unigram_json(const SentencePieceFile& file);

}  // namespace farstep
