#include "outer_optimizer/schedule/partition.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;

TEST_CASE("equal parts cover every element once and differ by one at most") {
  for (const int64_t n : {0, 1, 2, 7, 64, 1001, 214'983'680}) {
    for (const int num_parts : {1, 2, 3, 4, 5, 8, 16}) {
      int64_t next = 0;
      for (int index = 0; index < num_parts; ++index) {
        const auto part = equal_part(n, index, num_parts);
        REQUIRE(part.begin == next);
        REQUIRE(part.begin == n * index / num_parts);
        REQUIRE(part.size() >= n / num_parts);
        REQUIRE(part.size() <= n / num_parts + 1);
        next = part.end;
      }
      REQUIRE(next == n);
    }
  }
}

TEST_CASE("a part that does not exist is refused") {
  REQUIRE_THROWS_AS(equal_part(10, 2, 2), InternalError);
  REQUIRE_THROWS_AS(equal_part(10, -1, 2), InternalError);
  REQUIRE_THROWS_AS(equal_part(10, 0, 0), InternalError);
}
