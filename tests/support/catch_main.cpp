#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>

#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

// Made before a test's threads log: ThreadSanitizer does not see how libspdlog.so guards it.
[[maybe_unused]] static const auto kLog = spdlog::default_logger();

int main(int argc, char** argv) {
  const int exit_code = Catch::Session().run(argc, argv);
  // A sanitizer looks for leaks at the end. Without one the end is quick, as farstep-torch's is:
  // every test is a process, and LibTorch's destructors take 0.1 s in each.
#ifdef FARSTEP_QUICK_END
  std::fflush(nullptr);
  std::_Exit(exit_code);
#else
  return exit_code;
#endif
}
