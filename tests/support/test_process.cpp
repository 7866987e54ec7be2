// What every test program does besides Catch2's main.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "tests/support/skip.h"

namespace farstep {
namespace {

constexpr int kSkipped = 77;

bool skipped = false;

// Made before a test's threads log: ThreadSanitizer does not see how libspdlog.so guards it.
[[maybe_unused]] const auto kLog = spdlog::default_logger();

// A sanitizer looks for leaks at the end. Without one the end is quick, as farstep-torch's is:
// every test is a process, and LibTorch's destructors take 0.1 s in each.
#ifdef FARSTEP_QUICK_END
void end_quickly(int exit_code, void*) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

// Runs before the destructors of all that was made earlier, as LibTorch's objects were.
[[maybe_unused]] const int kRegistered = on_exit(end_quickly, nullptr);
#endif

}  // namespace

void skip_test(std::string_view lack) {
  skipped = true;
  std::cout << "SKIPPED: " << lack << std::endl;
}

}  // namespace farstep

// The linker calls this function where the program calls main(), as Catch2's is compiled already.
extern "C" int __real_main(int argc, char** argv);
extern "C" int __wrap_main(int argc, char** argv) {
  const int exit_code = __real_main(argc, argv);
  return exit_code == 0 && farstep::skipped ? farstep::kSkipped : exit_code;
}
