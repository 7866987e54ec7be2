// The shape of a LLaMA: presets, a run's changes to them, and Hugging Face's config.json.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/run_config.h"

namespace farstep {

struct LlamaConfig {
  int64_t vocabulary = 0;
  int64_t hidden = 0;        // C, width of the residual stream
  int64_t intermediate = 0;  // F, width inside the feed-forward
  int64_t layers = 0;
  int64_t heads = 0;     // query heads
  int64_t kv_heads = 0;  // key and value heads, each shared by heads / kv_heads query heads
  double rope_theta = 10000;
  double norm_epsilon = 1e-5;
  double init_std = 0.02;  // of fresh matrices
  bool tied_embeddings = false;

  int64_t head_size() const { return hidden / heads; }
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

// The preset's shape. 14m, 60m and 150m are named by their parameters outside the embeddings.
LlamaConfig preset_config(ModelPreset preset);

// The shape that a run's `model` describes, where it has no `from`. Throws ConfigError with `file`
// and the JSON path unless hidden is a multiple of heads, heads of kv_heads, and the head size
// even.
LlamaConfig resolve(const ModelConfig& model, const std::string& file);

// Throws ConfigError with `file` and the JSON path if `model` sets a member that `from` decides.
void require_no_shape(const ModelConfig& model, const std::string& file);

// The shape that a config.json describes. Throws DataError with `file` if it is another
// architecture, lacks a member, or asks for what is not here: rotary scaling, biases, an activation
// other than SiLU, a head size of its own.
LlamaConfig from_hugging_face(const Json& json, const std::string& file);

// The config.json from which `transformers` builds the same model for sequences of up to
// `sequence_length` tokens, in documents that `eos` ends.
Json to_hugging_face(const LlamaConfig& config, int64_t sequence_length, int64_t eos);

}  // namespace farstep
