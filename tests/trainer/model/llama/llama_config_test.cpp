#include "trainer/model/shape/llama_config.h"

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
                                   {"head_size", 10},
                                   {"rope_theta", 5.0},
                                   {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 32.0}}},
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
                              .tied_embeddings = false,
                              .own_head_size = 10,
                              .rope_scaling = RopeScaling{.factor = 32}});
  CHECK(config.head_size() == 10);
}

TEST_CASE("a head size that is hidden / heads is not one of its own") {
  const auto model = model_config({{"preset", "tiny"}, {"head_size", 32}});
  CHECK(resolve(model, "run.json") == preset_config(ModelPreset::kTiny));
}

TEST_CASE("a shape that does not fit together is refused with its JSON path") {
  const auto refusal = [](const Json& members) {
    return message_of<ConfigError>([&] { resolve(model_config(members), "run.json"); });
  };
  CHECK(refusal({{"heads", 3}}) == "run.json: model.heads: is 3; must divide hidden, 128");
  CHECK(refusal({{"kv_heads", 3}}) == "run.json: model.kv_heads: is 3; must divide heads, 4");
  CHECK(refusal({{"hidden", 12}}).find("model.heads: is 4; hidden / heads is 3") !=
        std::string::npos);
  CHECK(refusal({{"head_size", 9}}) ==
        "run.json: model.head_size: is 9; must be even for rotary embeddings");
  CHECK(refusal({{"rope_scaling", {{"low_freq_factor", 4}}}}) ==
        "run.json: model.rope_scaling.high_freq_factor: is 4; must be above low_freq_factor, 4");
  CHECK(refusal({{"rope_scaling", Json::object({{"rope_type", "yarn"}})}}) ==
        "run.json: rope_scaling.rope_type: is \"yarn\"; must be one of llama3");
}

TEST_CASE("shape members beside a folder to start from are refused") {
  CHECK_NOTHROW(require_no_shape(model_config({{"from", "smollm"}}), "run.json"));
  const auto refusal = [](const std::string& member, const Json& value) {
    const auto model = model_config({{"from", "smollm"}, {member, value}});
    return message_of<ConfigError>([&] { require_no_shape(model, "run.json"); });
  };
  CHECK(refusal("layers", 2) == "run.json: model.layers: must be null, as model.from decides it");
  CHECK(refusal("rope_scaling", Json::object()) ==
        "run.json: model.rope_scaling: must be null, as model.from decides it");
}

}  // namespace farstep
