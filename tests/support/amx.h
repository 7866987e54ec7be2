// What tests that need the processor's matrix instructions begin with.
#pragma once

#include <iostream>

#include "trainer/kernels/amx.h"

namespace farstep {

// Whether there are none; says so in the line by which CTest knows a skipped test.
inline bool lacks_amx() {
  if (has_amx()) return false;
  std::cout << "SKIPPED: this processor has no AMX\n";
  return true;
}

}  // namespace farstep
