// The check at the begin of tests that need a GPU.
#pragma once

#include "tests/support/skip.h"
#include "trainer/cuda/cuda_check.h"

namespace farstep {

// Returns whether there are fewer GPUs to test on. If so, skips the test.
inline bool lacks_gpu(int needed = 1) {
  if (usable_gpus() >= needed) return false;
  skip_test(needed == 1 ? "no usable NVIDIA GPU" : "fewer than two usable NVIDIA GPUs");
  return true;
}

}  // namespace farstep
