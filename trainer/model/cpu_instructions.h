// Limits the instructions of this process, including LibTorch and its libraries.
#pragma once

#include <string>

#include "trainer/base/processor/instruction_set.h"

namespace farstep {

// Limits the whole process to `set`: this program's own code, LibTorch, and inside it oneDNN and
// MKL (MKL on Intel's processors only). Must be called before other threads start and before
// LibTorch computes. Does not change environment variables that already limit these libraries.
void limit_cpu_instructions(InstructionSet set);

// Returns "amx", or "avx2, limited from amx by the config", followed by LibTorch's set.
std::string cpu_instructions_text();

}  // namespace farstep
