#include "trainer/base/processor/instruction_set.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace farstep;

TEST_CASE("a limit narrows the instruction set and never widens it") {
  const auto widest = widest_instruction_set();
  for (std::size_t i = 0; i < enum_names(InstructionSet{}).size(); ++i) {
    const auto limit = static_cast<InstructionSet>(i);
    limit_instruction_set(limit);
    CHECK(instruction_set() == std::min(limit, widest));
    CHECK(has_instructions(limit) == (limit <= widest));
    CHECK(has_instructions(InstructionSet::kBaseline));
  }
  limit_instruction_set(InstructionSet::kAmx);
  CHECK(instruction_set() == widest);
}

TEST_CASE("every instruction set has a name") {
  CHECK(enum_names(InstructionSet{})[static_cast<std::size_t>(InstructionSet::kAmx)] == "amx");
}
