// Several sources of examples in one run, each with its share of what training sees.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace farstep {

// One source.
struct SourceShare {
  int64_t size = 0;   // examples
  double weight = 1;  // relative to the other sources'
};

// Returns how many of `total` examples each source brings: each its part by weight, exact within
// one, and `total` in all (the method of largest remainders). Weights are above 0.
std::vector<int64_t> shares_of(int64_t total, std::span<const SourceShare> sources);

// Returns the size of the largest set in which all sources have their shares and none an example
// twice.
int64_t most_without_repeats(std::span<const SourceShare> sources);

}  // namespace farstep
