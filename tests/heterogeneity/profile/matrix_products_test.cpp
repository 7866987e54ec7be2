#include "heterogeneity/profile/matrix_products.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"

namespace farstep::heterogeneity {

namespace {

// A device of a steady speed, on a clock of its own.
struct FakeDevice {
  FakeClock clock;
  double flops_per_second = 1e9;
  int64_t most_rows = 0;

  ProductProbe probe(std::vector<MatrixProduct> products, int64_t rows, double seconds) {
    const auto prepare = [this, products](int64_t rows_now) -> RunProducts {
      most_rows = rows_now;
      return [this, products, rows_now](std::size_t i, int64_t repeats) {
        const std::vector<MatrixProduct> one{{products[i].inner, products[i].columns}};
        clock.advance(static_cast<double>(repeats) * total_flops(one, rows_now) / flops_per_second);
      };
    };
    return {.products = products, .rows = rows, .seconds = seconds, .prepare = prepare};
  }
};

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

TEST_CASE("The speed of a device is what its products show") {
  const std::vector<MatrixProduct> products{{.inner = 32, .columns = 48, .times = 2},
                                            {.inner = 48, .columns = 32}};
  for (const double flops_per_second : {1e6, 1e9, 1e12}) {
    FakeDevice device;
    device.flops_per_second = flops_per_second;
    const auto tflops = measure_tflops(device.probe(products, 64, 1), device.clock);
    CHECK(tflops == Approx(flops_per_second / 1e12));
  }
}

TEST_CASE("A device that would take too long gets fewer rows") {
  const std::vector<MatrixProduct> products{{.inner = 1000, .columns = 1000}};
  FakeDevice fast;
  measure_tflops(fast.probe(products, 4096, 100), fast.clock);
  CHECK(fast.most_rows == 4096);
  FakeDevice slow;
  slow.flops_per_second = 1e7;
  measure_tflops(slow.probe(products, 4096, 100), slow.clock);
  CHECK(slow.most_rows < 100);
}

TEST_CASE("What a device throws passes through") {
  FakeDevice device;
  auto probe = device.probe({{.inner = 1, .columns = 1}}, 1, 1);
  probe.prepare = [](int64_t) -> RunProducts { throw std::invalid_argument("no such products"); };
  CHECK_THROWS_AS(measure_tflops(probe, device.clock), std::invalid_argument);
}

}  // namespace farstep::heterogeneity
