// Pseudo-random normal values that are the same bits on every machine.
//
// Sites initialise on their own and must agree on every bit, so nothing here depends on a maths
// library, on vector instructions or on the number of threads. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace farstep {

// Fills `values` with normal values of mean 0 and deviation `deviation`, which `seed` and the
// position decide.
void fill_normal(std::span<float> values, double deviation, uint64_t seed);

}  // namespace farstep
