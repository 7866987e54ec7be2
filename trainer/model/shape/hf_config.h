// A LLaMA's config.json, as Hugging Face's tools read and write it.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/model/shape/llama_config.h"

namespace farstep {

// What a config.json says besides the shape. Ids are below the vocabulary.
struct HfFacts {
  int64_t positions = 2048;                   // max_position_embeddings: tokens of a sequence
  std::optional<int64_t> bos = {}, pad = {};  // bos_token_id, pad_token_id; nullopt: none
  std::vector<int64_t> eos = {};              // eos_token_id: each ends a text; empty: none

  friend bool operator==(const HfFacts&, const HfFacts&) = default;
};

struct HfConfig {
  LlamaConfig shape;
  HfFacts facts;

  friend bool operator==(const HfConfig&, const HfConfig&) = default;
};

// Returns what a config.json of any age says. Throws DataError with `file`, the member and what to
// do if a member is missing or absurd, or asks for what this model does not have: another
// architecture or activation, biases, dropout, quantised weights, a sliding window, rotary scaling
// other than Llama 3's, code of its own.
HfConfig from_hugging_face(const Json& json, const std::string& file);

// Returns the tokens that end a text by a generation_config.json, each below `vocabulary`; empty if
// it names none. Throws DataError as from_hugging_face() does.
std::vector<int64_t> generation_ends(const Json& json, const std::string& file, int64_t vocabulary);

// Returns a config.json from which `transformers` builds the same model, in fp32. Every fact is a
// member, so that no default of `transformers` can differ from it.
Json to_hugging_face(const HfConfig& config);

}  // namespace farstep
