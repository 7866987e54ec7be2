#include "trainer/inner/optimizer/gradient_norm.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

TEST_CASE("the norm is that of all elements whatever the size") {
  for (const int64_t size : {1, 2, 7, 32767, 32768, 32769, 200'001}) {
    const auto values = at::arange(size, at::kFloat).sin();
    CHECK(gradient_norm(values) ==
          Approx(values.to(at::kDouble).norm().item<double>()).epsilon(1e-12));
  }
  CHECK(gradient_norm(at::zeros({0})) == 0);
}

TEST_CASE("squares beyond the range of fp32 do not spoil the norm") {
  CHECK(gradient_norm(at::full({4}, 1e30F)) == Approx(2e30));
}

TEST_CASE("one value that is not finite shows in the norm") {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto values = at::ones({100'000});
    values[77'777] = bad;
    CHECK(!std::isfinite(gradient_norm(values)));
  }
}

TEST_CASE("the norm is the same bits with one thread and with two") {
  const auto values = at::arange(200'001, at::kFloat).cos();
  at::set_num_threads(1);
  const double one = gradient_norm(values);
  at::set_num_threads(2);
  CHECK(gradient_norm(values) == one);
}

TEST_CASE("clipping shortens what is longer and leaves the rest") {
  CHECK(clip_factor(4, 1.0) == Approx(0.25));
  CHECK(clip_factor(4, 1.0) == 1.0 / (4 + 1e-6));
  CHECK(clip_factor(0.5, 1.0) == 1);
  CHECK(clip_factor(0, 1.0) == 1);
  CHECK(clip_factor(1e9, std::nullopt) == 1);
}

TEST_CASE("a norm of anything but one flat fp32 tensor is a bug") {
  CHECK_THROWS_AS(gradient_norm(at::zeros({2, 2})), InternalError);
  CHECK_THROWS_AS(gradient_norm(at::zeros({2}, at::kDouble)), InternalError);
}

}  // namespace farstep
