#include "trainer/model/llama/llama_config.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/model/llama/llama_layout.h"

namespace farstep {

namespace {

int64_t parameters_of(ModelPreset preset) {
  return num_parameters(llama_layout(preset_config(preset)));
}

int64_t parameters_outside_embeddings(ModelPreset preset) {
  const auto config = preset_config(preset);
  const int64_t embeddings = config.tied_embeddings ? 1 : 2;
  return parameters_of(preset) - embeddings * config.vocabulary * config.hidden;
}

ModelConfig model_config(const Json& members) {
  return read_json<ModelConfig>(members, "run.json");
}

template <typename Error, typename Callable>
std::string message_of(Callable callable) {
  try {
    callable();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("150m has OpenDiLoCo's number of parameters") {
  CHECK(parameters_of(ModelPreset::k150M) == 214'983'680);
  CHECK(parameters_outside_embeddings(ModelPreset::k150M) == 149'447'680);
}

TEST_CASE("the other presets have the size that they are named for") {
  CHECK(parameters_of(ModelPreset::kSmolLM2) == 134'515'008);
  CHECK(parameters_of(ModelPreset::kTiny) == 1'000'576);
  CHECK(parameters_outside_embeddings(ModelPreset::k14M) == Approx(14e6).epsilon(0.05));
  CHECK(parameters_outside_embeddings(ModelPreset::k60M) == Approx(60e6).epsilon(0.05));
}

TEST_CASE("every preset is a valid shape") {
  for (const auto preset : {ModelPreset::kTiny, ModelPreset::k14M, ModelPreset::k60M,
                            ModelPreset::k150M, ModelPreset::kSmolLM2}) {
    const auto model = model_config({{"preset", name_of(preset)}});
    CHECK(resolve(model, "run.json") == preset_config(preset));
  }
}

TEST_CASE("members of the model config replace the preset's") {
  const auto model = model_config({{"preset", "tiny"},
                                   {"vocabulary", 100},
                                   {"hidden", 96},
                                   {"heads", 6},
                                   {"kv_heads", 3},
                                   {"rope_theta", 5.0},
                                   {"tied_embeddings", false},
                                   {"init_std", 0.1}});
  const auto config = resolve(model, "run.json");
  CHECK(config == LlamaConfig{.vocabulary = 100,
                              .hidden = 96,
                              .intermediate = 352,
                              .layers = 4,
                              .heads = 6,
                              .kv_heads = 3,
                              .rope_theta = 5.0,
                              .norm_epsilon = 1e-5,
                              .init_std = 0.1,
                              .tied_embeddings = false});
}

TEST_CASE("a shape that does not fit together is refused with its JSON path") {
  const auto refusal = [](const Json& members) {
    return message_of<ConfigError>([&] { resolve(model_config(members), "run.json"); });
  };
  CHECK(refusal({{"heads", 3}}) == "run.json: model.heads: is 3; must divide hidden, 128");
  CHECK(refusal({{"kv_heads", 3}}) == "run.json: model.kv_heads: is 3; must divide heads, 4");
  CHECK(refusal({{"hidden", 12}}).find("model.heads: is 4; hidden / heads is 3") !=
        std::string::npos);
}

TEST_CASE("shape members beside a folder to start from are refused") {
  CHECK_NOTHROW(require_no_shape(model_config({{"from", "smollm"}}), "run.json"));
  const auto model = model_config({{"from", "smollm"}, {"layers", 2}});
  CHECK(message_of<ConfigError>([&] { require_no_shape(model, "run.json"); }) ==
        "run.json: model.layers: must be null, as model.from decides it");
}

TEST_CASE("a config goes to Hugging Face's form and back unchanged") {
  for (const auto preset : {ModelPreset::kTiny, ModelPreset::k150M, ModelPreset::kSmolLM2}) {
    auto config = preset_config(preset);
    config.norm_epsilon = 1e-6;
    config.init_std = 0.04;
    CHECK(from_hugging_face(to_hugging_face(config, 1024, 2), "config.json") == config);
  }
}

TEST_CASE("a config.json of any age is understood") {
  auto json = to_hugging_face(preset_config(ModelPreset::kSmolLM2), 1024, 0);
  const auto config = from_hugging_face(json, "config.json");
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
    CHECK(from_hugging_face(json, "config.json").kv_heads == config.heads);
  }
}

TEST_CASE("a config.json that asks for what is not here is refused by name") {
  const auto refusal = [](const std::string& member, const Json& value) {
    auto json = to_hugging_face(preset_config(ModelPreset::kSmolLM2), 1024, 0);
    json[member] = value;
    return message_of<DataError>([&] { from_hugging_face(json, "m/config.json"); });
  };
  const auto names = [&](const std::string& member, const Json& value) {
    return refusal(member, value).starts_with("m/config.json: " + member + ": ");
  };
  CHECK(names("model_type", "gpt2"));
  CHECK(names("hidden_act", "gelu"));
  CHECK(names("attention_bias", true));
  CHECK(names("mlp_bias", true));
  CHECK(names("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}));
  CHECK(names("rope_scaling", {{"type", "linear"}, {"factor", 2.0}}));
  CHECK(names("rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}));
  CHECK(names("rope_scaling", 2));
  CHECK(names("head_dim", 128));
  CHECK(names("num_attention_heads", 7));
  CHECK(names("num_key_value_heads", 2));
  CHECK(names("hidden_size", nullptr));
  CHECK(names("hidden_size", 57.6));
  CHECK(names("num_hidden_layers", 0));
  CHECK(names("rms_norm_eps", "small"));
  CHECK(names("tie_word_embeddings", 1));
  CHECK_THROWS_AS(from_hugging_face(Json::array(), "config.json"), DataError);
}

}  // namespace farstep
