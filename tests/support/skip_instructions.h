// A test of vector code that this processor lacks.
#pragma once

#include <fmt/format.h>

#include "tests/support/skip.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/config/fields.h"

namespace farstep {

// Skips the test, as this processor has no such instructions. The caller ends its test.
inline void skip_for_lack_of(InstructionSet set) {
  skip_test(fmt::format("this processor has no {}", name_of(set)));
}

}  // namespace farstep
