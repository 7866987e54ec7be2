// Rotary position embedding (Su et al. 2021) of queries and keys together. Element i of a head is
// rotated with element i + D/2, as in `transformers`.
//
// Pure functions over ranges of rows; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// A row has all heads of one token: first the rotated ones (queries and keys), then those that are
// only rounded (values).
struct RotaryRows {
  int64_t sequence_length = 0;  // T; row r is at position r modulo T
  int64_t rotated_heads = 0, other_heads = 0;
  int64_t head_size = 0;           // D, even
  const float* cosines = nullptr;  // (T, D / 2)
  const float* sines = nullptr;    // (T, D / 2)

  FARSTEP_HOST_DEVICE int64_t width() const { return (rotated_heads + other_heads) * head_size; }
};

enum class Rotation { kForward, kBackward };

// Rotates rows `begin` to `end` of `from` (rows, width) and rounds them to the type of `to` (rows,
// width), which may be `from`. Backward is the inverse rotation, and so maps gradients back.
void rotate(const RotaryRows& shape, Rotation rotation, const float* from, int64_t begin,
            int64_t end, BF16* to);
void rotate(const RotaryRows& shape, Rotation rotation, const float* from, int64_t begin,
            int64_t end, float* to);

}  // namespace farstep
