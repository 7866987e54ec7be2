#include "trainer/model/llama/llama_layout.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {
const LlamaConfig kConfig{
    .vocabulary = 5, .hidden = 4, .intermediate = 3, .layers = 2, .heads = 2, .kv_heads = 1};
}  // namespace

TEST_CASE("matrices of a llama decay and norms begin as 1") {
  const auto layout = llama_layout(kConfig);
  for (const auto& spec : layout) {
    INFO(spec.name);
    CHECK(spec.decays == (spec.shape.size() == 2));
    CHECK(spec.decays == (spec.name.find("norm") == std::string::npos));
    CHECK(spec.init_std == (spec.decays ? kConfig.init_std : 0));
    CHECK(spec.init_value == (spec.decays ? 0 : 1));
  }
}

TEST_CASE("a tied head is no parameter of its own") {
  auto config = kConfig;
  const auto untied = llama_layout(config);
  config.tied_embeddings = true;
  const auto tied = llama_layout(config);
  CHECK(untied.back().name == "lm_head.weight");
  CHECK(tied.back().name == "model.norm.weight");
  CHECK(num_parameters(untied) - num_parameters(tied) == 5 * 4);
}

}  // namespace farstep
