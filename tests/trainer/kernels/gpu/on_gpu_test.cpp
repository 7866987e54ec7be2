#include "tests/trainer/kernels/gpu/on_gpu.h"

#include <limits>

namespace farstep {

TEST_CASE("neighbours in bf16 are near and what lies two units away is far") {
  const std::vector<float> wanted{1, -1, 1.9921875F, 2, 3e-4F, 255};
  for (const float exact_value : wanted) {
    const auto value = as<BF16>({exact_value});
    const auto moved = [&](int units) {
      return std::vector<BF16>{BF16{static_cast<uint16_t>(value[0].bits + units)}};
    };
    CHECK(far_values(value, value) == 0);
    CHECK(far_values(moved(1), value) == 0);
    CHECK(far_values(moved(-1), value) == 0);
    CHECK(far_values(moved(3), value) == 1);
    CHECK(far_values(moved(-3), value) == 1);
  }
}

TEST_CASE("what cancels may be far from nothing by a share of the largest value alone") {
  const auto wanted = as<BF16>({0, 100, 0});
  CHECK(far_values(as<BF16>({9e-4F, 100, 0}), wanted) == 0);
  CHECK(far_values(as<BF16>({9e-4F, 100, -2e-3F}), wanted) == 1);
  CHECK(far_values(as<BF16>({9e-4F, 1, 0}), as<BF16>({0, 1, 0}), 1e-6, 1000) == 0);
  CHECK(far_values(wanted, as<BF16>({0, 100})) == 3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(far_values(as<BF16>({nan, 100, 0}), wanted) == 1);
}

}  // namespace farstep
