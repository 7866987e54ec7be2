#include "trainer/model/parameters/parameter_layout.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {
std::vector<ParameterSpec> small_layout() {
  LayoutBuilder builder;
  builder.weight("matrix", {3, 4}, 0.5);
  builder.constant("norm", {4}, 1);
  builder.weight("kernel", {2, 1, 5, 5}, 0.1);
  builder.constant("bias", {2}, 0);
  return builder.finish();
}
}  // namespace

TEST_CASE("parameters follow each other without holes") {
  const auto layout = small_layout();
  int64_t offset = 0;
  for (const auto& spec : layout) {
    INFO(spec.name);
    CHECK(spec.offset == offset);
    CHECK(spec.decays == (spec.init_std != 0));
    offset = spec.end();
  }
  CHECK(num_parameters(layout) == offset);
  CHECK(offset == 12 + 4 + 50 + 2);
  CHECK(num_parameters({}) == 0);
}

TEST_CASE("named buffers lie in the flat vector one after the other") {
  const auto layout = small_layout();
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
