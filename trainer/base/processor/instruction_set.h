// The vector and matrix instructions that this process may use.
//
// One binary runs on different machines, so kernels are compiled for several sets, and one set is
// chosen at run time. A set includes all sets before it. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace farstep {

enum class InstructionSet : uint8_t {
  kBaseline,
  kAvx2,        // with FMA: x86-64-v3
  kAvx512,      // F, BW, CD, DQ and VL: x86-64-v4
  kAvx512Bf16,  // products of bf16 pairs: Intel since Cooper Lake, AMD since Zen 4
  kAmx,         // products of bf16 tiles: Intel since Sapphire Rapids
};
std::span<const std::string_view> enum_names(InstructionSet);

// Returns the widest set that the processor has and the system permits.
InstructionSet widest_instruction_set();

// Returns the set to use: the widest one, or the limit if that is narrower.
InstructionSet instruction_set();

// Limits the whole process to `set` and those before it. Must be called before other threads start.
void limit_instruction_set(InstructionSet set);

inline bool has_instructions(InstructionSet set) {
  return set <= instruction_set();
}

}  // namespace farstep
