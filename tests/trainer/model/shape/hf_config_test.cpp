#include "trainer/model/shape/hf_config.h"

#include <limits>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

HfConfig smollm2() {
  return {preset_config(ModelPreset::kSmolLM2),
          {.positions = 8192, .bos = 1, .pad = 2, .eos = {2}}};
}

// The members that differ from a plain model in Llama 3.2's config.json.
Json llama32_scaling() {
  return {{"factor", 32.0},
          {"high_freq_factor", 4.0},
          {"low_freq_factor", 1.0},
          {"original_max_position_embeddings", 8192},
          {"rope_type", "llama3"}};
}

// What is said of a config.json with one member changed.
std::string refusal(const std::string& member, const Json& value) {
  auto json = to_hugging_face(smollm2());
  json[member] = value;
  try {
    from_hugging_face(json, "m/config.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Whether the refusal begins with the file and the member, and goes on after the reason.
bool is_named(const std::string& member, const Json& value) {
  INFO(refusal(member, value));
  return refusal(member, value).starts_with("m/config.json: " + member + ": ");
}

}  // namespace

TEST_CASE("a config goes to Hugging Face's form and back unchanged") {
  for (const auto preset : {ModelPreset::kTiny, ModelPreset::k150M, ModelPreset::kSmolLM2}) {
    HfConfig config{preset_config(preset), {.positions = 1024, .bos = 1, .pad = {}, .eos = {2}}};
    config.shape.norm_epsilon = 1e-6;
    config.shape.init_std = 0.04;
    CHECK(from_hugging_face(to_hugging_face(config), "config.json") == config);
    config.shape.rope_scaling = RopeScaling{.factor = 32, .high_freq_factor = 5};
    config.shape.own_head_size = 48;
    config.facts = {.positions = 7, .bos = {}, .pad = 3, .eos = {5, 0, 1}};
    CHECK(from_hugging_face(to_hugging_face(config), "config.json") == config);
    config.facts = {.positions = 7, .bos = {}, .pad = {}, .eos = {}};
    CHECK(from_hugging_face(to_hugging_face(config), "config.json") == config);
  }
}

TEST_CASE("a config.json of any age is understood") {
  auto json = to_hugging_face(smollm2());
  const auto config = from_hugging_face(json, "config.json");
  CHECK(config == smollm2());
  SECTION("with the rotary base in rope_parameters") {
    json.erase("rope_theta");
    json["rope_parameters"] = {{"rope_theta", 100000.0}, {"rope_type", "default"}};
    CHECK(from_hugging_face(json, "config.json") == config);
  }
  SECTION("with a null rope_scaling and without newer members") {
    json["rope_scaling"] = nullptr;
    for (const auto* name : {"head_dim", "attention_bias", "mlp_bias", "hidden_act"}) {
      json.erase(name);
    }
    CHECK(from_hugging_face(json, "config.json") == config);
  }
  SECTION("without key and value heads every head has its own") {
    json.erase("num_key_value_heads");
    CHECK(from_hugging_face(json, "config.json").shape.kv_heads == config.shape.heads);
  }
  SECTION("with members that say no more than their absence") {
    json["quantization_config"] = nullptr;
    json["sliding_window"] = 4096;
    json["use_sliding_window"] = false;
    json["layer_types"] = {"full_attention", "full_attention"};
    json["pad_token_id"] = -1;
    auto without_pad = config;
    without_pad.facts.pad.reset();
    CHECK(from_hugging_face(json, "config.json") == without_pad);
  }
  SECTION("without a length it has that of transformers") {
    json.erase("max_position_embeddings");
    CHECK(from_hugging_face(json, "config.json").facts.positions == 2048);
  }
}

TEST_CASE("Llama 3's rotary scaling is read in the old and in the new form") {
  const RopeScaling wanted{.factor = 32};
  auto json = to_hugging_face(smollm2());
  json["rope_scaling"] = llama32_scaling();
  CHECK(from_hugging_face(json, "config.json").shape.rope_scaling == wanted);
  auto both = json;
  both["rope_parameters"] = llama32_scaling();
  CHECK(from_hugging_face(both, "config.json").shape.rope_scaling == wanted);
  auto parameters = llama32_scaling();
  parameters["rope_theta"] = 500000.0;
  json.erase("rope_scaling");
  json.erase("rope_theta");
  json["rope_parameters"] = parameters;
  const auto shape = from_hugging_face(json, "config.json").shape;
  CHECK(shape.rope_scaling == wanted);
  CHECK(shape.rope_theta == 500000);

  both["rope_parameters"]["factor"] = 8.0;
  CHECK_THROWS_WITH(from_hugging_face(both, "config.json"),
                    Catch::Contains("rope_parameters: scales unlike rope_scaling"));
}

TEST_CASE("a config.json that asks for what is not here is refused by name") {
  CHECK(is_named("model_type", "gpt2"));
  CHECK(is_named("model_type", "mistral"));
  CHECK(is_named("model_type", nullptr));
  CHECK(is_named("architectures", {"LlamaForSequenceClassification"}));
  CHECK(is_named("auto_map", {{"AutoModelForCausalLM", "modeling.Own"}}));
  CHECK(is_named("quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}));
  CHECK(is_named("sliding_window", 4096));
  CHECK(is_named("layer_types", {"full_attention", "sliding_attention"}));
  CHECK(is_named("hidden_act", "gelu"));
  CHECK(is_named("attention_bias", true));
  CHECK(is_named("mlp_bias", true));
  CHECK(is_named("attention_dropout", 0.1));
  CHECK(is_named("partial_rotary_factor", 0.5));
  CHECK(refusal("rope_scaling", {{"type", "linear"}, {"factor", 2.0}})
            .starts_with("m/config.json: rope_scaling.type: is \"linear\"; Farstep has the rotary "
                         "scaling llama3, or none"));
  CHECK(refusal("rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e4}})
            .starts_with("m/config.json: rope_parameters.rope_type: is \"yarn\""));
  CHECK(is_named("rope_scaling", 2));
}

TEST_CASE("absurd numbers of a config.json are refused by name with what is right") {
  const auto huge = std::numeric_limits<uint64_t>::max();
  for (const std::string member :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"}) {
    for (const Json& value : {Json(0), Json(-64), Json(57.6), Json(huge), Json(1e300), Json("64"),
                              Json(true), Json::array(), Json::object()}) {
      CHECK(is_named(member, value));
      CHECK_THAT(refusal(member, value), Catch::Contains("must be a whole number"));
    }
  }
  for (const auto* member : {"rms_norm_eps", "rope_theta", "initializer_range"}) {
    for (const Json& value : {Json(0), Json(-1e-5), Json(1e300), Json("small")}) {
      CHECK(is_named(member, value));
    }
  }
  for (const auto* member : {"vocab_size", "hidden_size", "num_hidden_layers"}) {
    CHECK(refusal(member, nullptr) == "m/config.json: " + std::string(member) +
                                          ": is missing; copy the whole config.json of the model");
  }
  CHECK(is_named("num_attention_heads", 7));
  CHECK(is_named("num_key_value_heads", 2));
  CHECK(is_named("head_dim", 63));
  CHECK(is_named("tie_word_embeddings", 1));
  CHECK_THROWS_AS(from_hugging_face(Json::array(), "config.json"), DataError);
}

TEST_CASE("token ids beyond the vocabulary and wrong scalings are refused by name") {
  for (const auto* member : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    for (const Json& value : {Json(49152), Json(-2), Json("</s>"), Json(1.5)}) {
      CHECK(is_named(member, value));
    }
  }
  CHECK(is_named("eos_token_id", {2, 49152}));
  for (const auto* member :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    for (const Json& value : {Json(nullptr), Json(0), Json(-1), Json(1e300), Json("8")}) {
      auto scaling = llama32_scaling();
      scaling[member] = value;
      CHECK(refusal("rope_scaling", scaling)
                .starts_with("m/config.json: rope_scaling." + std::string(member) + ": "));
    }
  }
  auto scaling = llama32_scaling();
  scaling["high_freq_factor"] = 0.5;
  CHECK(refusal("rope_scaling", scaling)
            .starts_with("m/config.json: rope_scaling.high_freq_factor: is 0.5; must be above"));
  CHECK(refusal("rope_parameters", scaling)
            .starts_with("m/config.json: rope_parameters.high_freq_factor: "));
}

TEST_CASE("a message shows only the beginning of a long value") {
  CHECK(refusal("hidden_act", std::string(100'000, 'x')).size() < 300);
}

}  // namespace farstep
