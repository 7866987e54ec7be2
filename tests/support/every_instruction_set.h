// Runs tests of vector code at every instruction set that it is compiled for.
#pragma once

#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/config/fields.h"

namespace farstep {

// Limits this process to `set` while it lives.
class InstructionLimit {
 public:
  explicit InstructionLimit(InstructionSet set) { limit_instruction_set(set); }
  ~InstructionLimit() { limit_instruction_set(InstructionSet::kAmx); }
  InstructionLimit(const InstructionLimit&) = delete;
  InstructionLimit& operator=(const InstructionLimit&) = delete;
};

// Returns the instruction sets that kernels and codecs are compiled for and this processor has.
inline std::vector<InstructionSet> vector_code_sets() {
  std::vector<InstructionSet> sets;
  for (const auto set :
       {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (set <= widest_instruction_set()) sets.push_back(set);
  }
  return sets;
}

}  // namespace farstep

// At the head of a test case: runs it once for each of vector_code_sets(), limited to that set.
#define FARSTEP_AT_EVERY_INSTRUCTION_SET()                                       \
  const auto set_under_test = GENERATE(from_range(farstep::vector_code_sets())); \
  const farstep::InstructionLimit limit_under_test(set_under_test);              \
  INFO("instructions: " << farstep::name_of(set_under_test))
