#include "outer_optimizer/codec/instruction_set.h"

namespace farstep {

InstructionSet widest_instruction_set() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return InstructionSet::kAvx2;
#endif
  return InstructionSet::kBaseline;
}

}  // namespace farstep
