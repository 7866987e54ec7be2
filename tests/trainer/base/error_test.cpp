#include "trainer/base/error.h"

#include "tests/support/catch.h"

using namespace farstep;
using Catch::Contains;

TEST_CASE("every kind of error has the exit code of the contract") {
  CHECK(InternalError("x").exit_code() == 1);
  CHECK(ConfigError("x").exit_code() == 2);
  CHECK(DataError("x").exit_code() == 3);
  CHECK(PeerError("north", "x").exit_code() == 4);
  const PeerError lost("north", "no heartbeat");
  CHECK(lost.site() == "north");
  CHECK(std::string(lost.what()) == "no heartbeat");
}

TEST_CASE("a check that holds is silent and evaluates its condition once") {
  int evaluations = 0;
  FARSTEP_CHECK(++evaluations == 1, "not shown");
  CHECK(evaluations == 1);
}

TEST_CASE("a check that fails says where and what") {
  const int found = 3;
  CHECK_THROWS_AS([&] { FARSTEP_CHECK(found == 4, "found {}", found); }(), InternalError);
  CHECK_THROWS_WITH([&] { FARSTEP_CHECK(found == 4, "found {}", found); }(),
                    Contains("error_test.cpp:") && Contains("found == 4: found 3"));
}
