#include "outer_optimizer/schedule/extent.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/processor/vector_dispatch.h"

namespace farstep::outer_optimizer {

namespace {

// Several sums side by side, so that the compiler vectorises the loop. The same bits for every
// instruction set.
Extent extent_of_values(const float* values, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  double squares[kLanes] = {};
  float largest[kLanes] = {};
  for (std::size_t k = 0; k < n; k += kLanes) {
    const std::size_t lanes = n - k < kLanes ? n - k : kLanes;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float value = values[k + lane];
      const float magnitude = value < 0 ? -value : value;
      squares[lane] += static_cast<double>(value) * static_cast<double>(value);
      largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
    }
  }
  Extent extent;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    extent.norm += squares[lane];
    extent.largest = std::max(extent.largest, static_cast<double>(largest[lane]));
  }
  extent.norm = std::sqrt(extent.norm);
  return extent;
}

}  // namespace

Extent extent_of(std::span<const float> values) {
  return run_vector_code<extent_of_values>(values.data(), values.size());
}

}  // namespace farstep::outer_optimizer
