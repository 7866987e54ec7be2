// The check at the begin of tests that need a GPU.
#pragma once

#include <iostream>

#include "trainer/cuda/cuda_check.h"

namespace farstep {

// Returns whether there is no GPU to test on. If so, prints the line by which CTest detects a
// skipped test.
inline bool lacks_gpu() {
  if (usable_gpus() > 0) return false;
  std::cout << "SKIPPED: no usable NVIDIA GPU\n";
  return true;
}

}  // namespace farstep
