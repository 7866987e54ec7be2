#include "trainer/model/parameters/parameters.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/model/parameters/normal_values.h"

namespace farstep {

namespace {

uint64_t checksum_of_normal(std::size_t size, uint64_t seed) {
  std::vector<float> values(size);
  fill_normal(values, std::vector<NormalStretch>{{std::ssize(values), 1}}, seed);
  return checksum(std::as_bytes(std::span(values)));
}

bool lies_in(const at::Tensor& view, const at::Tensor& flat) {
  return view.is_alias_of(flat) && view.is_contiguous();
}

}  // namespace

TEST_CASE("normal values have the moments of the normal distribution") {
  std::vector<float> values(300'000);
  fill_normal(values, std::vector<NormalStretch>{{std::ssize(values), 2.0}}, 1);
  double sum = 0;
  double square = 0;
  double fourth = 0;
  int64_t beyond = 0;
  for (const double scaled : values) {
    const double value = scaled / 2;
    sum += value;
    square += value * value;
    fourth += value * value * value * value;
    beyond += std::abs(value) > 1.959964 ? 1 : 0;
  }
  const auto size = static_cast<double>(values.size());
  CHECK(sum / size == Approx(0).margin(0.01));
  CHECK(square / size == Approx(1).epsilon(0.01));
  CHECK(fourth / size == Approx(3).epsilon(0.02));
  CHECK(static_cast<double>(beyond) / size == Approx(0.05).epsilon(0.05));
}

TEST_CASE("normal values are the same bits with any number of threads") {
  at::set_num_threads(1);
  const auto one = checksum_of_normal(200'001, 7);
  at::set_num_threads(2);
  CHECK(checksum_of_normal(200'001, 7) == one);
  CHECK(checksum_of_normal(200'001, 8) != one);
  CHECK(checksum_of_normal(200'001, uint64_t{7} << 32) != one);
}

TEST_CASE("the deviation of a stretch scales its values and no others") {
  std::vector<float> values(70'000), wanted(70'000);
  fill_normal(wanted, std::vector<NormalStretch>{{70'000, 0.5}}, 3);
  // Stretches that end within a chunk of one engine, and at its end.
  fill_normal(values, std::vector<NormalStretch>{{11, 0.5}, {65'536, 2}, {70'000, 0}}, 3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    REQUIRE(values[i] == (i < 11 ? wanted[i] : i < 65'536 ? 4 * wanted[i] : 0));
  }
  CHECK_THROWS_AS(fill_normal(values, std::vector<NormalStretch>{{7, 1}}, 3), InternalError);
}

TEST_CASE("normal values are the bits that every other machine has") {
  CHECK(checksum_text(checksum_of_normal(70'000, 1)) == "7a1f10b1448f2110");
}

TEST_CASE("fresh parameters are normal matrices and norms of 1") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  CHECK(parameters.values().count_nonzero().item<int64_t>() == 0);
  parameters.initialise(3);
  for (const auto& spec : parameters.layout()) {
    const auto& leaf = parameters.leaf(spec.name);
    INFO(spec.name);
    if (spec.decays) {
      CHECK(leaf.ne(leaf.flatten()[0]).any().item<bool>());
    } else {
      CHECK(leaf.eq(1).all().item<bool>());
    }
  }
  Parameters again(llama_layout(kSmallConfig), at::kCPU);
  again.initialise(3);
  CHECK(at::equal(parameters.values(), again.values()));
  again.initialise(4);
  CHECK(!at::equal(parameters.values(), again.values()));
}

TEST_CASE("leaves and their gradients are views into the flat vectors") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  CHECK(parameters.size() == num_parameters(parameters.layout()));
  for (std::size_t i = 0; i < parameters.layout().size(); ++i) {
    const auto& spec = parameters.layout()[i];
    const auto& leaf = parameters.leaf(spec.name);
    CHECK(leaf.is_leaf());
    CHECK(leaf.sizes() == at::IntArrayRef(spec.shape));
    CHECK(lies_in(leaf, parameters.values()));
    CHECK(lies_in(leaf.grad(), parameters.gradients()));
    CHECK(leaf.storage_offset() == spec.offset);
    CHECK(leaf.grad().storage_offset() == spec.offset);
  }
  CHECK_THROWS_AS(parameters.leaf("model.layers.9.mlp.up_proj.weight"), InternalError);
}

TEST_CASE("backward adds to the flat gradients and does not replace them") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  const auto& leaf = parameters.leaf("model.embed_tokens.weight");
  const auto& spec = parameters.layout().front();
  for (int pass = 1; pass <= 3; ++pass) {
    (leaf * 2).sum().backward();
    CHECK(parameters.gradients().narrow(0, 0, spec.size()).eq(2.0 * pass).all().item<bool>());
    CHECK(lies_in(leaf.grad(), parameters.gradients()));
  }
  CHECK(parameters.gradients().sum().item<float>() == Approx(6.0 * spec.size()));
}

TEST_CASE("on a CPU the host's values are the parameters' own memory") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  const auto values = parameters.host_values().pull();
  REQUIRE(static_cast<int64_t>(values.size()) == parameters.size());
  values[0] = 5;
  parameters.host_values().push();
  CHECK(parameters.leaf(parameters.layout().front().name)[0][0].item<float>() == 5);
}

}  // namespace farstep
