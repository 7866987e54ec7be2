// The check at the begin of tests that need GPUs.
#pragma once

#include <fmt/format.h>

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

// The same for a test that needs `count` GPUs, two or more: with fewer it would compare a thing
// with itself.
inline bool lacks_gpus(int count) {
  if (lacks_gpu()) return true;
  if (usable_gpus() >= count) return false;
  std::cout << "SKIPPED: fewer than " << (count == 2 ? "two" : fmt::format("{}", count))
            << " NVIDIA GPUs\n";
  return true;
}

}  // namespace farstep
