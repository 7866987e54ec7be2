// Mixes the bits of a number, for hashes, keys and noise that must be equal on all machines. A pure
// function; thread-safe.
#pragma once

#include <cstdint>

namespace farstep {

// The step and finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection in which every
// input bit affects every output bit.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace farstep
