// Tokens that tell their own place.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace farstep {

// Returns 0, 1, 2, ...
inline std::vector<int32_t> counting(int32_t count) {
  std::vector<int32_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

}  // namespace farstep
