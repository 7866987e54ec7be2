// The GPU that a test of the fused model runs on: a real one, or one that the CPU emulates.
#pragma once

#include <ATen/ATen.h>

#include <optional>

namespace farstep {

// Nothing, and the line of a skipped test, where there is none.
std::optional<at::Device> tested_gpu();

// The same where it has no FP8.
std::optional<at::Device> tested_fp8_gpu();

}  // namespace farstep
