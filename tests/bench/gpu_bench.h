// What every benchmark of GPUs does around its work.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <functional>

#include "trainer/base/error.h"
#include "trainer/cuda/cuda_check.h"

namespace farstep {

// Runs `work` and returns the program's exit code: 77 without a GPU, and where an exception ends
// the work its kind's code, or 1 if it is not of this project (as LibTorch's are). Says so in
// either case. Every line is written as it is printed, also to a file, so that what was measured
// before is not lost.
inline int run_gpu_bench(const char* program, const std::function<void()>& work) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  if (usable_gpus() == 0) {
    fmt::print("SKIPPED: no usable NVIDIA GPU\n");
    return 77;
  }
  try {
    work();
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return 1;
  }
}

}  // namespace farstep
