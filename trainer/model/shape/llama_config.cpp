// Two sources of a shape: a run file's preset with changes here, and a config.json of Hugging Face
// in hf_config. Both end in one struct, and one function finds what no shape may be.
#include "trainer/model/shape/llama_config.h"

namespace farstep {

std::optional<ShapeFault> find_fault(const LlamaConfig& config) {
  // Also where heads have a size of their own: `transformers` refuses other models.
  if (config.hidden % config.heads != 0) {
    return ShapeFault{"heads",
                      fmt::format("is {}; must divide hidden, {}", config.heads, config.hidden)};
  }
  if (config.own_head_size % 2 != 0) {
    return ShapeFault{"head_size", fmt::format("is {}; must be even for rotary embeddings",
                                               config.own_head_size)};
  }
  if (config.head_size() % 2 != 0) {
    return ShapeFault{"heads", fmt::format("is {}; hidden / heads is {}, which must be even for "
                                           "rotary embeddings",
                                           config.heads, config.head_size())};
  }
  if (config.heads % config.kv_heads != 0) {
    return ShapeFault{"kv_heads",
                      fmt::format("is {}; must divide heads, {}", config.kv_heads, config.heads)};
  }
  const auto& scaling = config.rope_scaling;
  if (scaling && scaling->low_freq_factor >= scaling->high_freq_factor) {
    return ShapeFault{"rope_scaling.high_freq_factor",
                      fmt::format("is {}; must be above low_freq_factor, {}",
                                  scaling->high_freq_factor, scaling->low_freq_factor)};
  }
  return std::nullopt;
}

// smollm2-135m has the shape of the published model; the others are scaled like LLaMA, with heads
// of 32 or 64 values.
LlamaConfig preset_config(ModelPreset preset) {
  switch (preset) {
    case ModelPreset::kTiny:
      return {.vocabulary = 2048,
              .hidden = 128,
              .intermediate = 352,
              .layers = 4,
              .heads = 4,
              .kv_heads = 2,
              .tied_embeddings = true};
    case ModelPreset::k14M:
      return {.vocabulary = 32000,
              .hidden = 384,
              .intermediate = 1024,
              .layers = 8,
              .heads = 6,
              .kv_heads = 6};
    case ModelPreset::k60M:
      return {.vocabulary = 32000,
              .hidden = 640,
              .intermediate = 1728,
              .layers = 12,
              .heads = 10,
              .kv_heads = 10};
    case ModelPreset::k150M:
      return {.vocabulary = 32000,
              .hidden = 1024,
              .intermediate = 2688,
              .layers = 12,
              .heads = 16,
              .kv_heads = 16};
    case ModelPreset::kSmolLM2:
      return {.vocabulary = 49152,
              .hidden = 576,
              .intermediate = 1536,
              .layers = 30,
              .heads = 9,
              .kv_heads = 3,
              .rope_theta = 100000,
              .tied_embeddings = true};
  }
  throw InternalError("no such model preset");
}

LlamaConfig resolve(const ModelConfig& model, const std::string& file) {
  FARSTEP_CHECK(model.from.empty(), "the model's shape comes from {}", model.from);
  const auto preset = preset_config(model.preset);
  auto config = preset;
  config.vocabulary = model.vocabulary.value_or(preset.vocabulary);
  config.hidden = model.hidden.value_or(preset.hidden);
  config.intermediate = model.intermediate.value_or(preset.intermediate);
  config.layers = model.layers.value_or(preset.layers);
  config.heads = model.heads.value_or(preset.heads);
  config.kv_heads = model.kv_heads.value_or(preset.kv_heads);
  config.set_head_size(model.head_size.value_or(0));
  config.rope_scaling = model.rope_scaling;
  config.rope_theta = model.rope_theta.value_or(preset.rope_theta);
  config.norm_epsilon = model.norm_epsilon.value_or(preset.norm_epsilon);
  config.tied_embeddings = model.tied_embeddings.value_or(preset.tied_embeddings);
  config.init_std = model.init_std;
  if (const auto fault = find_fault(config)) {
    JsonPath{file, "model"}.member(fault->member).fail(fault->why);
  }
  return config;
}

void require_no_shape(const ModelConfig& model, const std::string& file) {
  auto copy = model;  // fields() is not a const method
  copy.fields([&]<typename T>(const char* name, const T& value, auto&&...) {
    if constexpr (OptionalField<T>) {
      if (value) {
        JsonPath{file, "model"}.member(name).fail("must be null, as model.from decides it");
      }
    }
  });
}

}  // namespace farstep
