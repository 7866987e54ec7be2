#include "trainer/validation/validation_interval.h"

#include <algorithm>
#include <cmath>

namespace farstep {

bool is_validation_due(int64_t examples_before, int64_t examples_after, int64_t examples) {
  // A step's backward pass takes twice as long as the forward pass; validation has only the latter.
  constexpr double kForwardShare = 1.0 / 3;
  const double between =
      std::max(1.0, static_cast<double>(examples) * kForwardShare / kValidationShare);
  // By the examples of all sites: they count alike, and validate after the same rounds.
  return std::floor(static_cast<double>(examples_after) / between) >
         std::floor(static_cast<double>(examples_before) / between);
}

}  // namespace farstep
