// A config.json comes from anybody and has members of many versions. Each number has a range before
// it is used, so that no size of a model can overflow. What the model lacks is refused by its
// member's name, instead of computing something else.
#include "trainer/model/shape/hf_config.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

namespace farstep {

namespace {

// Far above every published model; their products stay below 2^63.
constexpr Rules kWidth = in_range(1, 1'000'000);
constexpr Rules kVocabulary = in_range(2, 10'000'000);
constexpr Rules kLayers = in_range(1, 10'000);
constexpr Rules kPositions = in_range(1, 1'000'000'000);

// A message shows no more of a stranger's value than its beginning.
std::string shown(const Json& value) {
  constexpr std::size_t kMost = 60;
  auto text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// Reads a config.json member by member.
class HuggingFaceReader {
 public:
  // `prefix` is the path of `json` in the file, with its dot: "rope_scaling.".
  HuggingFaceReader(const Json& json, const std::string& file, const std::string& prefix = "")
      : json_(json), file_(file), prefix_(prefix) {
    if (json.is_object()) return;
    throw DataError(fmt::format("{}: {}is not an object", file,
                                prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": "));
  }

  [[noreturn]] void fail(const std::string& member, const std::string& why) const {
    throw DataError(fmt::format("{}: {}{}: {}", file_, prefix_, member, why));
  }

  // Returns the member, or null if it is absent.
  const Json& find(const std::string& name) const {
    static const Json null;
    const auto found = json_.find(name);
    return found == json_.end() ? null : *found;
  }

  // Returns the reader of an object, or nullopt if the member is absent.
  std::optional<HuggingFaceReader> object(const std::string& name) const {
    const auto& value = find(name);
    if (value.is_null()) return std::nullopt;
    return HuggingFaceReader(value, file_, prefix_ + name + ".");
  }

  // Without a fallback the member must be there.
  template <typename T>
  T number(const std::string& name, const Rules& rules,
           std::optional<T> fallback = std::nullopt) const {
    const auto& value = find(name);
    if (value.is_null()) {
      if (fallback) return *fallback;
      fail(name, "is missing; copy the whole config.json of the model");
    }
    return number_of<T>(name, value, rules);
  }

  template <typename T>
  T number_of(const std::string& name, const Json& value, const Rules& rules) const {
    const bool fits = std::is_integral_v<T> ? value.is_number_integer() : value.is_number();
    if (!fits || !rules.allow(value.get<double>())) {
      fail(name,
           fmt::format("is {}; must be a {} {}; copy the model's own config.json", shown(value),
                       std::is_integral_v<T> ? "whole number" : "number", rules.text()));
    }
    return value.get<T>();
  }

  // Returns the flag; false if it is absent.
  bool flag(const std::string& name) const {
    const auto& value = find(name);
    if (!value.is_null() && !value.is_boolean()) fail(name, "is neither true nor false");
    return !value.is_null() && value.get<bool>();
  }

  // Refuses another value than `wanted`; an absent member has it.
  void require(const std::string& name, const Json& wanted, std::string_view what) const {
    const auto& value = find(name);
    if (value.is_null() || value == wanted) return;
    fail(name, fmt::format("is {}; Farstep has {}; choose a model with {}", shown(value), what,
                           wanted.dump()));
  }

  // Refuses a member that is there and not null, false or empty.
  void refuse(const std::string& name, std::string_view what) const {
    const auto& value = find(name);
    if (value.is_null() || value == false || value.empty()) return;
    fail(name, fmt::format("is {}; {}", shown(value), what));
  }

 private:
  const Json& json_;
  const std::string file_, prefix_;
};

void refuse_other_models(const HuggingFaceReader& reader) {
  if (reader.find("model_type").is_null()) {
    reader.fail("model_type", "is missing; Farstep trains the architecture \"llama\"");
  }
  reader.require("model_type", "llama", "the architecture llama alone");
  const auto& names = reader.find("architectures");
  // The second has no head of its own. Tensors are checked by name, so a head that is missing
  // shows.
  const bool is_causal =
      !names.is_array() || names.empty() || std::ranges::any_of(names, [](const Json& name) {
        return name == "LlamaForCausalLM" || name == "LlamaModel";
      });
  if (!is_causal) {
    reader.fail("architectures", fmt::format("is {}; must have \"LlamaForCausalLM\", a language "
                                             "model with its head",
                                             shown(names)));
  }
  reader.refuse("auto_map", "Farstep runs no code of a model; choose one that transformers knows");
  reader.refuse("quantization_config",
                "Farstep trains no quantised weights; choose the model in bf16, fp16 or fp32");
  reader.require("hidden_act", "silu", "the activation silu alone");
  for (const auto* bias : {"attention_bias", "mlp_bias"}) {
    if (reader.flag(bias)) {
      reader.fail(bias, "is true; Farstep's linear layers have no biases; choose a model without");
    }
  }
  reader.require("attention_dropout", 0, "no dropout");
  reader.require("partial_rotary_factor", 1, "rotary positions in all values of a head");
  if (reader.find("use_sliding_window") != false) {
    reader.refuse("sliding_window",
                  "Farstep's attention sees the whole sequence; choose a model without a window");
  }
  const auto& kinds = reader.find("layer_types");
  if (!kinds.is_null() && !(kinds.is_array() && std::ranges::all_of(kinds, [](const Json& kind) {
                              return kind == "full_attention";
                            }))) {
    reader.fail("layer_types", "has others than \"full_attention\", the one that Farstep has");
  }
}

// Returns the scaling that an object of rotary settings has.
std::optional<RopeScaling> scaling_of(const HuggingFaceReader& rope) {
  rope.require("partial_rotary_factor", 1, "rotary positions in all values of a head");
  // Older files have the one, newer ones the other, and some have both.
  bool is_scaled = false;
  for (const auto* type : {"type", "rope_type"}) {
    const auto& value = rope.find(type);
    is_scaled = is_scaled || value == "llama3";
    if (value != "llama3") rope.require(type, "default", "the rotary scaling llama3, or none");
  }
  if (!is_scaled) return std::nullopt;
  RopeScaling scaling;
  scaling.factor = rope.number<double>("factor", in_range(1, 1e6));
  scaling.low_freq_factor = rope.number<double>("low_freq_factor", in_range(1e-6, 1e6));
  scaling.high_freq_factor = rope.number<double>("high_freq_factor", in_range(1e-6, 1e6));
  scaling.original_max_position_embeddings =
      rope.number<int64_t>("original_max_position_embeddings", kPositions);
  return scaling;
}

// Older files have the base as a member of its own, beside rope_scaling. Newer ones have all in
// rope_parameters.
void read_rotary(const HuggingFaceReader& reader, LlamaConfig& config) {
  constexpr Rules kTheta = in_range(1, 1e15);
  config.rope_theta = reader.number<double>("rope_theta", kTheta, 10000);
  bool is_known = false;
  for (const std::string name : {"rope_scaling", "rope_parameters"}) {
    const auto rope = reader.object(name);
    if (!rope) continue;
    config.rope_theta = rope->number<double>("rope_theta", kTheta, config.rope_theta);
    const auto scaling = scaling_of(*rope);
    if (is_known && scaling != config.rope_scaling) {
      reader.fail(name, "scales unlike rope_scaling; remove the one that is wrong");
    }
    is_known = true;
    config.rope_scaling = scaling;
  }
}

// A fault has the run file's name of its member.
std::string member_of_fault(const ShapeFault& fault, const HuggingFaceReader& reader) {
  if (fault.member == "heads") return "num_attention_heads";
  if (fault.member == "kv_heads") return "num_key_value_heads";
  if (fault.member == "head_size") return "head_dim";
  const bool is_old = !reader.find("rope_scaling").is_null();
  return is_old ? std::string(fault.member) : "rope_parameters.high_freq_factor";
}

LlamaConfig read_shape(const HuggingFaceReader& reader) {
  LlamaConfig config;
  config.vocabulary = reader.number<int64_t>("vocab_size", kVocabulary);
  config.hidden = reader.number<int64_t>("hidden_size", kWidth);
  config.intermediate = reader.number<int64_t>("intermediate_size", kWidth);
  config.layers = reader.number<int64_t>("num_hidden_layers", kLayers);
  config.heads = reader.number<int64_t>("num_attention_heads", in_range(1, 65536));
  // Members that may be absent have the defaults of transformers' LlamaConfig.
  config.kv_heads = reader.number<int64_t>("num_key_value_heads", in_range(1, 65536), config.heads);
  config.set_head_size(reader.number<int64_t>("head_dim", in_range(1, 65536), 0));
  read_rotary(reader, config);
  config.norm_epsilon = reader.number<double>("rms_norm_eps", in_range(1e-30, 1), 1e-6);
  config.init_std = reader.number<double>("initializer_range", in_range(1e-30, 1e3), 0.02);
  config.tied_embeddings = reader.flag("tie_word_embeddings");
  if (const auto fault = find_fault(config)) {
    reader.fail(member_of_fault(*fault, reader), fault->why);
  }
  return config;
}

// An id below 0 is an old way to say that there is none.
std::optional<int64_t> token_id(const HuggingFaceReader& reader, const std::string& name,
                                const Json& value, int64_t vocabulary) {
  if (value.is_null()) return std::nullopt;
  const auto id =
      reader.number_of<int64_t>(name, value, in_range(-1, static_cast<double>(vocabulary - 1)));
  return id < 0 ? std::nullopt : std::optional(id);
}

// Returns the ids of a member that is one id or a list of them.
std::vector<int64_t> token_ids(const HuggingFaceReader& reader, const std::string& name,
                               int64_t vocabulary) {
  const auto& ids = reader.find(name);
  std::vector<int64_t> found;
  for (const auto& value : ids.is_array() ? ids : Json::array({ids})) {
    if (const auto id = token_id(reader, name, value, vocabulary)) found.push_back(*id);
  }
  return found;
}

HfFacts read_facts(const HuggingFaceReader& reader, int64_t vocabulary) {
  HfFacts facts;
  facts.positions = reader.number<int64_t>("max_position_embeddings", kPositions, facts.positions);
  const auto id_of = [&](const std::string& name) {
    return token_id(reader, name, reader.find(name), vocabulary);
  };
  facts.bos = id_of("bos_token_id");
  facts.pad = id_of("pad_token_id");
  facts.eos = token_ids(reader, "eos_token_id", vocabulary);
  return facts;
}

Json json_of(const std::optional<int64_t>& id) {
  return id ? Json(*id) : Json();
}

}  // namespace

HfConfig from_hugging_face(const Json& json, const std::string& file) {
  const HuggingFaceReader reader(json, file);
  refuse_other_models(reader);
  const auto shape = read_shape(reader);
  return {shape, read_facts(reader, shape.vocabulary)};
}

std::vector<int64_t> generation_ends(const Json& json, const std::string& file,
                                     int64_t vocabulary) {
  return token_ids(HuggingFaceReader(json, file), "eos_token_id", vocabulary);
}

// With rope_scaling beside rope_theta: old versions of `transformers` read no rope_parameters, and
// new ones read both.
Json to_hugging_face(const HfConfig& config) {
  const auto& [shape, facts] = config;
  Json json{{"architectures", {"LlamaForCausalLM"}},
            {"model_type", "llama"},
            {"vocab_size", shape.vocabulary},
            {"hidden_size", shape.hidden},
            {"intermediate_size", shape.intermediate},
            {"num_hidden_layers", shape.layers},
            {"num_attention_heads", shape.heads},
            {"num_key_value_heads", shape.kv_heads},
            {"head_dim", shape.head_size()},
            {"hidden_act", "silu"},
            {"max_position_embeddings", facts.positions},
            {"rms_norm_eps", shape.norm_epsilon},
            {"rope_theta", shape.rope_theta},
            {"rope_scaling", shape.rope_scaling ? to_json(*shape.rope_scaling) : Json()},
            {"attention_bias", false},
            {"attention_dropout", 0.0},
            {"mlp_bias", false},
            {"initializer_range", shape.init_std},
            {"tie_word_embeddings", shape.tied_embeddings},
            {"bos_token_id", json_of(facts.bos)},
            {"eos_token_id", Json()},
            {"pad_token_id", json_of(facts.pad)},
            {"torch_dtype", "float32"}};
  auto& eos = json["eos_token_id"];
  if (facts.eos.size() == 1) eos = facts.eos.front();
  if (facts.eos.size() > 1) eos = facts.eos;
  return json;
}

}  // namespace farstep
