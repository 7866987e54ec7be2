// What every test program does besides Catch2's main.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>

namespace farstep {
namespace {

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
}  // namespace farstep
