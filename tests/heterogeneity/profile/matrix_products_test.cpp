#include "heterogeneity/profile/matrix_products.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {

ProductProbe small_probe() {
  return {.device = at::kCPU,
          .products = {{.inner = 32, .columns = 48, .times = 2}, {.inner = 48, .columns = 32}},
          .rows = 64,
          .seconds = 0.01,
          .finish = [] {}};
}

}  // namespace

TEST_CASE("Operations are a multiplication and an addition for every pair of elements") {
  CHECK(total_flops({}, 5) == 0);
  const std::vector<MatrixProduct> one{{.inner = 3, .columns = 5}};
  CHECK(total_flops(one, 0) == 0);
  CHECK(total_flops(one, 7) == 2 * 7 * 3 * 5);
  const std::vector<MatrixProduct> several{{.inner = 3, .columns = 5, .times = 4},
                                           {.inner = 11, .columns = 1}};
  CHECK(total_flops(several, 7) == 4 * 2 * 7 * 3 * 5 + 2 * 7 * 11);
  // A GPU's: beyond 32 bits, and beyond 53 bits still to rounding.
  const std::vector<MatrixProduct> large{{.inner = 1 << 20, .columns = 1 << 20, .times = 1000}};
  CHECK(total_flops(large, 1 << 20) == Approx(2e3 * std::pow(2.0, 60)));
}

TEST_CASE("A processor's products are measured in every type that it has") {
  const RealClock clock;
  for (const auto type : {ProductType::kFP32, ProductType::kBF16}) {
    const auto tflops = measure_tflops(small_probe(), type, clock);
    REQUIRE(tflops);
    CHECK(*tflops > 0);
    CHECK(*tflops < 1000);
  }
  CHECK(!measure_tflops(small_probe(), ProductType::kTF32, clock));
}

TEST_CASE("The setting of TF32 is as before a measurement") {
  const RealClock clock;
  const bool before = at::globalContext().allowTF32CuBLAS();
  measure_tflops(small_probe(), ProductType::kFP32, clock);
  CHECK(at::globalContext().allowTF32CuBLAS() == before);
}

TEST_CASE("One row and a single column are measured as well") {
  const RealClock clock;
  auto probe = small_probe();
  probe.rows = 1;
  probe.products = {{.inner = 1, .columns = 1}};
  CHECK(measure_tflops(probe, ProductType::kFP32, clock).value() > 0);
}

}  // namespace farstep
