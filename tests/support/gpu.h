// What tests that need a GPU begin with.
#pragma once

#include <iostream>

#include "trainer/cuda/cuda_check.h"

namespace farstep {

// Whether there is no GPU to test on; says so in the line by which CTest knows a skipped test.
inline bool lacks_gpu() {
  if (usable_gpus() > 0) return false;
  std::cout << "SKIPPED: no usable NVIDIA GPU\n";
  return true;
}

}  // namespace farstep
