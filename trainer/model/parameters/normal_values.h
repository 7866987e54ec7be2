// Pseudo-random normal values with the same bits on every machine.
//
// Each site initialises the model itself, and all must agree on every bit. So nothing here depends
// on a maths library, on vector instructions or on the number of threads. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace farstep {

// Values up to element `end`, from where the stretch before ends.
struct NormalStretch {
  int64_t end = 0;
  double deviation = 0;
};

// Fills `values` with normal values of mean 0, which `seed`, position and deviation decide. The
// stretches end in rising order, the last at the end of the values.
void fill_normal(std::span<float> values, std::span<const NormalStretch> stretches, uint64_t seed);

}  // namespace farstep
