// The shape of a LLaMA: presets, and a run's own shape. That of a config.json is hf_config's.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/config/json_fields.h"
#include "trainer/model/shape/model_config.h"

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
  int64_t own_head_size = 0;  // D where it is not hidden / heads, else 0
  std::optional<RopeScaling> rope_scaling = {};

  int64_t head_size() const { return own_head_size == 0 ? hidden / heads : own_head_size; }
  // Sets D; 0 stands for hidden / heads.
  void set_head_size(int64_t size) { own_head_size = size * heads == hidden ? 0 : size; }
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

// Returns the preset's shape. The names 14m, 60m and 150m count parameters outside the embeddings.
LlamaConfig preset_config(ModelPreset preset);

// The fault of a shape: the run file's name of the wrong member, and the reason.
struct ShapeFault {
  std::string_view member;
  std::string why;
};

// Returns what no shape may be: heads that do not divide hidden, kv_heads that do not divide heads,
// an odd head size, or limits of the rotary scaling in the wrong order. The numbers must be above
// 0.
std::optional<ShapeFault> find_fault(const LlamaConfig& config);

// Returns the shape in a run's `model` without `from`. Throws ConfigError with `file` and JSON path
// if it has a fault.
LlamaConfig resolve(const ModelConfig& model, const std::string& file);

// Throws ConfigError with `file` and JSON path if `model` sets a member that `from` determines.
void require_no_shape(const ModelConfig& model, const std::string& file);

}  // namespace farstep
