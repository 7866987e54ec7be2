#include "outer_optimizer/schedule/extent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"

namespace farstep::outer_optimizer {
namespace {

TEST_CASE("the extent of any number of values is that of a plain loop") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const std::size_t size : {0, 1, 15, 16, 17, 31, 32, 33, 1000}) {
    std::vector<float> values(size);
    for (std::size_t k = 0; k < size; ++k) values[k] = std::cos(static_cast<float>(k));
    if (size > 20) values[size - 2] = -7;
    double squares = 0, largest = 0;
    for (const float value : values) {
      squares += static_cast<double>(value) * value;
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    const auto extent = extent_of(values);
    CHECK(extent.norm == Approx(std::sqrt(squares)).epsilon(1e-14));
    CHECK(extent.largest == largest);
  }
  const std::vector<float> endless{1, std::numeric_limits<float>::infinity(), 2};
  CHECK(std::isinf(extent_of(endless).largest));
  const std::vector<float> large(1000, std::numeric_limits<float>::max());
  CHECK(std::isfinite(extent_of(large).norm));
}

}  // namespace
}  // namespace farstep::outer_optimizer
