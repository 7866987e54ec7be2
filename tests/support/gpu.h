// The check at the begin of tests that need GPUs.
#pragma once

#include "tests/support/skip.h"
#include "trainer/cuda/cuda_check.h"

namespace farstep {

// Returns whether there is no GPU to test on. If so, skips the test.
inline bool lacks_gpu() {
  if (usable_gpus() > 0) return false;
  skip_test("no usable NVIDIA GPU");
  return true;
}

// The same for a test that with one GPU would compare a thing with itself.
inline bool lacks_two_gpus() {
  if (lacks_gpu()) return true;
  if (usable_gpus() > 1) return false;
  skip_test("fewer than two NVIDIA GPUs");
  return true;
}

}  // namespace farstep
