#include "trainer/base/error.h"

#include <vector>

#include "tests/support/catch.h"

using namespace farstep;
using Catch::Contains;

TEST_CASE("every kind of error has the exit code of the contract") {
  CHECK(InternalError("x").exit_code() == 1);
  CHECK(ConfigError("x").exit_code() == 2);
  CHECK(DataError("x").exit_code() == 3);
  CHECK(PeerError("north", "x").exit_code() == 4);
  CHECK(DivergenceError("x").exit_code() == 5);
  const PeerError lost("north", "no heartbeat");
  CHECK(lost.site() == "north");
  CHECK(std::string(lost.what()) == "no heartbeat");
}

TEST_CASE("every exit code is explained once") {
  std::vector<int> explained;
  for (const auto& row : exit_codes()) {
    explained.push_back(row.code);
    CHECK_FALSE(row.meaning.empty());
    CHECK(row.remedy.empty() == (row.code == 0));
  }
  CHECK(explained == std::vector<int>{0, 1, 2, 3, 4, 5, kExitInterrupted});
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
