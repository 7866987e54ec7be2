// The matrices of a product: its factors and its result.
#pragma once

#include <cstdint>

namespace farstep {

// A row-major matrix whose rows begin `stride` values apart. With `transposed` the factor is the
// transpose of the matrix in memory.
template <typename T>
struct Factor {
  const T* values = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

// The row-major result. With `add` the product is added to the present content.
struct Product {
  float* values = nullptr;
  int64_t stride = 0;
  bool add = false;
  // A hint: the result is large and read late. A kernel may then store it past the caches, so that
  // they keep other data.
  bool past_cache = false;
};

}  // namespace farstep
