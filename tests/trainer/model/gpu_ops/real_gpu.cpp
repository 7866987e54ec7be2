#include "tests/support/skip.h"
#include "tests/trainer/model/first_gpu.h"
#include "tests/trainer/model/gpu_ops/tested_gpu.h"
#include "trainer/model/gpu_ops/make_gpu_ops.h"

namespace farstep {

std::optional<at::Device> tested_gpu() {
  return first_gpu();
}

std::optional<at::Device> tested_fp8_gpu() {
  const auto gpu = tested_gpu();
  if (!gpu) return std::nullopt;
  try {
    make_gpu_ops({.hidden = 64, .heads = 1}, *gpu, /*fp8=*/true);
    return gpu;
  } catch (const ConfigError& error) {
    skip_test(error.what());
    return std::nullopt;
  }
}

}  // namespace farstep
