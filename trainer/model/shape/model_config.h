// The model that a run trains (`model` of a run file), and how its step is computed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/config/fields.h"
#include "trainer/model/shape/image_model_config.h"

namespace farstep {

enum class ModelFamily { kLanguage, kImages };
inline std::span<const std::string_view> enum_names(ModelFamily) {
  static constexpr std::array<std::string_view, 2> kNames{"language", "images"};
  return kNames;
}

enum class ModelPreset { kTiny, k14M, k60M, k150M, kSmolLM2 };
inline std::span<const std::string_view> enum_names(ModelPreset) {
  static constexpr std::array<std::string_view, 5> kNames{"tiny", "14m", "60m", "150m",
                                                          "smollm2-135m"};
  return kNames;
}

enum class ComputeType { kAuto, kFP32, kBF16, kFP8 };
inline std::span<const std::string_view> enum_names(ComputeType) {
  static constexpr std::array<std::string_view, 4> kNames{"auto", "fp32", "bf16", "fp8"};
  return kNames;
}

enum class StepKind { kFused, kAutograd };
inline std::span<const std::string_view> enum_names(StepKind) {
  static constexpr std::array<std::string_view, 2> kNames{"fused", "autograd"};
  return kNames;
}

enum class RopeType { kLlama3 };
inline std::span<const std::string_view> enum_names(RopeType) {
  static constexpr std::array<std::string_view, 1> kNames{"llama3"};
  return kNames;
}

// How Llama 3.1 and later stretch rotary positions. Names and defaults are those of `transformers`,
// so that the object of a config.json can be copied.
struct RopeScaling {
  RopeType rope_type = RopeType::kLlama3;
  double factor = 8;
  double low_freq_factor = 1, high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rope_type", rope_type, "how frequencies are scaled");
    visit("factor", factor, "by how much low frequencies are divided", at_least(1));
    visit("low_freq_factor", low_freq_factor,
          "frequencies of fewer turns than this in the original length are divided", above(0));
    visit("high_freq_factor", high_freq_factor,
          "those of more turns stay; between the two the divisor changes gradually; above "
          "low_freq_factor",
          above(0));
    visit("original_max_position_embeddings", original_max_position_embeddings,
          "the original length: tokens of a sequence before the stretching",
          in_range(1, 1'000'000'000));
  }
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

// The model: a preset, with single fields replaced. Null members take the preset's value. All
// members but `images` are those of a language model.
struct ModelConfig {
  ModelFamily family = ModelFamily::kLanguage;
  ModelPreset preset = ModelPreset::kTiny;
  std::optional<int64_t> vocabulary, hidden, intermediate, layers, heads, kv_heads, head_size;
  std::optional<double> rope_theta, norm_epsilon;
  std::optional<RopeScaling> rope_scaling;
  std::optional<bool> tied_embeddings;
  double init_std = 0.02;
  std::string from;
  ImageModelConfig images;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("family", family,
          "language: a LLaMA on tokens, which the other members describe; images: a convolutional "
          "net that names what an image shows, which `images` describes");
    visit("preset", preset, "shape of the model, which the members below change");
    visit("vocabulary", vocabulary, "entries of the embedding", at_least(2));
    visit("hidden", hidden, "width of the residual stream", at_least(2));
    visit("intermediate", intermediate, "width inside the feed-forward", at_least(1));
    visit("layers", layers, "transformer blocks", at_least(1));
    visit("heads", heads, "query heads; divides hidden", at_least(1));
    visit("kv_heads", kv_heads, "key and value heads; divides heads", at_least(1));
    visit("head_size", head_size, "values of a head, even; null: hidden / heads",
          in_range(2, 65536));
    visit("rope_theta", rope_theta, "base of the rotary frequencies", above(0));
    visit("rope_scaling", rope_scaling, "how rotary frequencies are scaled; null: not at all");
    visit("norm_epsilon", norm_epsilon, "epsilon inside RMSNorm", above(0));
    visit("tied_embeddings", tied_embeddings, "the output head is the embedding");
    visit("init_std", init_std, "standard deviation of fresh matrices", above(0));
    visit("from", from,
          "Hugging Face folder (config.json, model.safetensors) to start from, under a site's "
          "models folder if relative; shape members must then be null");
    visit("images", images, "of family images: the net");
  }
};

}  // namespace farstep
