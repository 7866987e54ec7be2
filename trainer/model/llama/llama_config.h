// The shape of a LLaMA: presets, a run's own shape, and Hugging Face's config.json.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/json_fields.h"
#include "trainer/model/model_config.h"

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
  double init_std = 0.02;  // deviation of initial matrices
  bool tied_embeddings = false;

  int64_t head_size() const { return hidden / heads; }
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

// Returns the preset's shape. The names 14m, 60m and 150m count parameters outside the embeddings.
LlamaConfig preset_config(ModelPreset preset);

// Returns the shape in a run's `model` without `from`. Throws ConfigError with `file` and JSON path
// unless heads divides hidden, kv_heads divides heads, and the head size is even.
LlamaConfig resolve(const ModelConfig& model, const std::string& file);

// Throws ConfigError with `file` and JSON path if `model` sets a member that `from` determines.
void require_no_shape(const ModelConfig& model, const std::string& file);

// Returns the shape in a config.json. Throws DataError with `file` if it is another architecture,
// lacks a member, or needs a missing feature: rotary scaling, biases, an activation other than
// SiLU, another head size.
LlamaConfig from_hugging_face(const Json& json, const std::string& file);

// Returns a config.json from which `transformers` builds the same model, for sequences of up to
// `sequence_length` tokens in documents that `eos` ends.
Json to_hugging_face(const LlamaConfig& config, int64_t sequence_length,
                     std::optional<int64_t> eos);

}  // namespace farstep
