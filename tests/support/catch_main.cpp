#include <spdlog/spdlog.h>

// Made before a test's threads log: ThreadSanitizer does not see how libspdlog.so guards it.
[[maybe_unused]] static const auto kLog = spdlog::default_logger();

#if __has_include(<catch2/catch.hpp>)
#define CATCH_CONFIG_MAIN
#include "tests/support/catch.h"
#else
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
#endif
