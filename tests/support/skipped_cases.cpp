// What tests/scripts/test_every_test.py runs to see how a program ends: hidden, so CTest does not
// list them.
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace farstep;

TEST_CASE("one that is skipped", "[.]") {
  skip_test("it rains");
}

TEST_CASE("one that fails after it was skipped", "[.]") {
  skip_test("it rains");
  CHECK(1 + 1 == 3);
}

TEST_CASE("one that passes", "[.]") {
  CHECK(1 + 1 == 2);
}
