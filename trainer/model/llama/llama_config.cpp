// Two sources of a shape: a run file's preset with changes, and a config.json of Hugging Face. Both
// end in one struct, and one function finds what no shape may be.
#include "trainer/model/llama/llama_config.h"

#include <string_view>
#include <type_traits>

namespace farstep {

namespace {

// The fault of a shape: the config's name of the wrong member, and the reason.
struct ShapeFault {
  std::string_view member;
  std::string why;
};

std::optional<ShapeFault> find_fault(const LlamaConfig& config) {
  if (config.hidden % config.heads != 0) {
    return ShapeFault{"heads",
                      fmt::format("is {}; must divide hidden, {}", config.heads, config.hidden)};
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
  return std::nullopt;
}

// Reads a config.json member by member.
class HuggingFaceReader {
 public:
  HuggingFaceReader(const Json& json, const std::string& file) : json_(json), file_(file) {
    if (!json.is_object()) throw DataError(fmt::format("{}: is not an object", file));
  }

  [[noreturn]] void fail(const std::string& member, const std::string& why) const {
    throw DataError(fmt::format("{}: {}: {}", file_, member, why));
  }

  // Returns the member, or null if it is absent.
  const Json& find(const std::string& name) const {
    static const Json null;
    const auto found = json_.find(name);
    return found == json_.end() ? null : *found;
  }

  template <typename T>
  T number(const std::string& name, std::optional<T> fallback = std::nullopt) const {
    const auto& value = find(name);
    if (value.is_null() && fallback) return *fallback;
    if (std::is_integral_v<T> ? !value.is_number_integer() : !value.is_number()) {
      fail(name, value.is_null() ? "is missing" : "is not a number of its kind");
    }
    if (value.get<double>() <= 0) fail(name, "must be above 0");
    return value.get<T>();
  }

  // Returns the flag; false if it is absent.
  bool flag(const std::string& name) const {
    const auto& value = find(name);
    if (!value.is_null() && !value.is_boolean()) fail(name, "is neither true nor false");
    return !value.is_null() && value.get<bool>();
  }

  void require(const std::string& name, const Json& wanted) const {
    const auto& value = find(name);
    if (value != wanted) {
      fail(name, fmt::format("is {}; this model has {} only", value.dump(), wanted.dump()));
    }
  }

  // Returns the base of the rotary frequencies. Older files have it as a member of its own. Newer
  // ones have it in rope_parameters, together with the scaling.
  double rope_theta() const {
    for (const std::string name : {"rope_scaling", "rope_parameters"}) {
      const auto& rope = find(name);
      if (rope.is_null()) continue;
      const HuggingFaceReader members(rope, file_ + ": " + name);
      for (const std::string type : {"type", "rope_type"}) {
        if (!members.find(type).is_null()) members.require(type, "default");
      }
      if (!members.find("rope_theta").is_null()) return members.number<double>("rope_theta");
    }
    return number<double>("rope_theta", 10000);
  }

 private:
  const Json& json_;
  const std::string file_;
};

}  // namespace

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

// Refuses features that this model lacks, instead of computing something else.
LlamaConfig from_hugging_face(const Json& json, const std::string& file) {
  const HuggingFaceReader reader(json, file);
  reader.require("model_type", "llama");
  if (!reader.find("hidden_act").is_null()) reader.require("hidden_act", "silu");
  for (const std::string bias : {"attention_bias", "mlp_bias"}) {
    if (reader.flag(bias)) reader.fail(bias, "is true; this model has no biases");
  }
  LlamaConfig config;
  config.vocabulary = reader.number<int64_t>("vocab_size");
  config.hidden = reader.number<int64_t>("hidden_size");
  config.intermediate = reader.number<int64_t>("intermediate_size");
  config.layers = reader.number<int64_t>("num_hidden_layers");
  config.heads = reader.number<int64_t>("num_attention_heads");
  // Members that may be absent have the defaults of transformers' LlamaConfig.
  config.kv_heads = reader.number<int64_t>("num_key_value_heads", config.heads);
  config.rope_theta = reader.rope_theta();
  config.norm_epsilon = reader.number<double>("rms_norm_eps", 1e-6);
  config.init_std = reader.number<double>("initializer_range", 0.02);
  config.tied_embeddings = reader.flag("tie_word_embeddings");
  if (const auto fault = find_fault(config)) {
    reader.fail(fault->member == "heads" ? "num_attention_heads" : "num_key_value_heads",
                fault->why);
  }
  if (!reader.find("head_dim").is_null()) reader.require("head_dim", config.head_size());
  return config;
}

// Every fact of the model is a member, so that no default of `transformers` can differ from it.
Json to_hugging_face(const LlamaConfig& config, int64_t sequence_length,
                     std::optional<int64_t> eos) {
  const Json end = eos ? Json(*eos) : Json();
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", config.vocabulary},
          {"hidden_size", config.hidden},
          {"intermediate_size", config.intermediate},
          {"num_hidden_layers", config.layers},
          {"num_attention_heads", config.heads},
          {"num_key_value_heads", config.kv_heads},
          {"head_dim", config.head_size()},
          {"hidden_act", "silu"},
          {"max_position_embeddings", sequence_length},
          {"rms_norm_eps", config.norm_epsilon},
          {"rope_theta", config.rope_theta},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"initializer_range", config.init_std},
          {"tie_word_embeddings", config.tied_embeddings},
          {"bos_token_id", end},
          {"eos_token_id", end},
          {"torch_dtype", "float32"}};
}

}  // namespace farstep
