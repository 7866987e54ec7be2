#if __has_include(<catch2/catch.hpp>)
#define CATCH_CONFIG_MAIN
#include "tests/support/catch.h"
#else
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
#endif
