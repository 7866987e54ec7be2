#include "trainer/model/parameter_layout.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {
const LlamaConfig kConfig{
    .vocabulary = 5, .hidden = 4, .intermediate = 3, .layers = 2, .heads = 2, .kv_heads = 1};
}  // namespace

TEST_CASE("parameters follow each other without holes and norms do not decay") {
  const auto layout = parameter_layout(kConfig);
  int64_t offset = 0;
  for (const auto& spec : layout) {
    INFO(spec.name);
    CHECK(spec.offset == offset);
    CHECK(spec.decays == (spec.shape.size() == 2));
    CHECK(spec.decays == (spec.name.find("norm") == std::string::npos));
    offset = spec.end();
  }
  CHECK(num_parameters(layout) == offset);
}

TEST_CASE("a tied head is no parameter of its own") {
  auto config = kConfig;
  const auto untied = parameter_layout(config);
  config.tied_embeddings = true;
  const auto tied = parameter_layout(config);
  CHECK(untied.back().name == "lm_head.weight");
  CHECK(tied.back().name == "model.norm.weight");
  CHECK(num_parameters(untied) - num_parameters(tied) == 5 * 4);
}

TEST_CASE("every element of the flat vector belongs to one named parameter") {
  const auto layout = parameter_layout(kConfig);
  for (const auto& spec : layout) {
    CHECK(parameter_at(layout, spec.offset) == spec.name);
    CHECK(parameter_at(layout, spec.end() - 1) == spec.name);
  }
  CHECK_THROWS_AS(parameter_at(layout, -1), InternalError);
  CHECK_THROWS_AS(parameter_at(layout, num_parameters(layout)), InternalError);
}

TEST_CASE("named buffers lie in the flat vector one after the other") {
  const auto layout = parameter_layout(kConfig);
  std::vector<float> flat(static_cast<std::size_t>(num_parameters(layout)));
  const auto buffers = named_parameters(layout, flat);
  REQUIRE(buffers.size() == layout.size());
  const auto* next = reinterpret_cast<std::byte*>(flat.data());
  for (std::size_t i = 0; i < layout.size(); ++i) {
    CHECK(buffers[i].name == layout[i].name);
    CHECK(buffers[i].shape == layout[i].shape);
    CHECK(buffers[i].bytes.data() == next);
    next += buffers[i].bytes.size();
  }
  CHECK(next == reinterpret_cast<std::byte*>(flat.data() + flat.size()));
  CHECK_THROWS_AS(named_parameters(layout, std::span(flat).first(3)), InternalError);
}

}  // namespace farstep
