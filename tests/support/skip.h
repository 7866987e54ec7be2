// A test that this machine cannot run.
#pragma once

#include <string_view>

namespace farstep {

// Says what the machine lacks, in words that scripts/test_results.py knows. Unless a check fails,
// the program then ends with exit code 77, by which CTest knows a skipped test. The caller ends its
// test.
void skip_test(std::string_view lack);

}  // namespace farstep
