// How far values reach. A pure function; thread-safe.
#pragma once

#include <span>

namespace farstep::outer_optimizer {

struct Extent {
  double norm = 0;     // Euclidean
  double largest = 0;  // magnitude of a value
};

// Returns the extent of values, none of which is NaN; both are infinite if one of them is. The same
// bits with every instruction set.
Extent extent_of(std::span<const float> values);

}  // namespace farstep::outer_optimizer
