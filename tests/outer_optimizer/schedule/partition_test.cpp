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

TEST_CASE("equal shares give the equal parts") {
  for (const int num_parts : {1, 2, 3, 7, 64, 1000}) {
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{214'983'680}}) {
      const auto parts =
          cut_by_shares({0, n}, std::vector<double>(static_cast<std::size_t>(num_parts), 0.3));
      for (int index = 0; index < num_parts; ++index) {
        REQUIRE(parts[static_cast<std::size_t>(index)] == equal_part(n, index, num_parts));
      }
    }
  }
}

TEST_CASE("parts follow their shares and leave no gap") {
  const std::vector<double> shares{3, 0, 1};
  CHECK(cut_by_shares({100, 108}, shares) ==
        std::vector<Range>{{100, 106}, {106, 106}, {106, 108}});
  CHECK(cut_by_shares({5, 5}, shares) == std::vector<Range>{{5, 5}, {5, 5}, {5, 5}});
  REQUIRE_THROWS_AS(cut_by_shares({0, 4}, std::vector<double>{}), InternalError);
  REQUIRE_THROWS_AS(cut_by_shares({0, 4}, std::vector<double>{0, 0}), InternalError);
  REQUIRE_THROWS_AS(cut_by_shares({0, 4}, std::vector<double>{2, -1}), InternalError);
}

TEST_CASE("parts cut at tensors end where tensors do") {
  const std::vector<int64_t> tensors{0, 10, 90, 100, 200};
  const std::vector<double> two{1, 1}, four{1, 1, 1, 1};
  CHECK(cut_at_borders({0, 200}, two, tensors) == std::vector<Range>{{0, 100}, {100, 200}});
  CHECK(cut_at_borders({0, 200}, four, tensors) ==
        std::vector<Range>{{0, 10}, {10, 100}, {100, 100}, {100, 200}});
  CHECK(cut_at_borders({0, 200}, std::vector<double>{0, 1}, tensors) ==
        std::vector<Range>{{0, 0}, {0, 200}});
  // One tensor larger than all others together.
  CHECK(cut_at_borders({0, 1000}, four, std::vector<int64_t>{0, 990, 1000}) ==
        std::vector<Range>{{0, 0}, {0, 990}, {990, 990}, {990, 1000}});
}
