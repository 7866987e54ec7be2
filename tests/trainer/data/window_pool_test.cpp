#include "trainer/data/window_pool.h"

#include <random>
#include <set>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

using Ranges = std::vector<SequenceRange>;

// A pool with these ranges of the numbers below `next`.
WindowPool pool_of(int64_t next, const Ranges& returned) {
  WindowPool pool(next);
  for (const auto& range : returned) pool.give_back(range);
  return pool;
}

std::vector<int64_t> numbers(const Ranges& ranges) {
  std::vector<int64_t> result;
  for (const auto& range : ranges) {
    for (int64_t number = range.begin; number < range.end; ++number) result.push_back(number);
  }
  return result;
}

}  // namespace

TEST_CASE("a fresh pool counts up") {
  WindowPool pool;
  CHECK(pool.at(0) == 0);
  CHECK(pool.at(1'000'000'000'000) == 1'000'000'000'000);
  CHECK(pool.take(0).empty());
  CHECK(pool.take(1) == Ranges{{0, 1}});
  CHECK(pool.take(4) == Ranges{{1, 5}});
  CHECK(pool == WindowPool(5));
}

TEST_CASE("what comes back is next, in ascending order") {
  auto pool = pool_of(20, {{9, 10}, {3, 6}, {5, 5}});
  CHECK(pool.returned() == Ranges{{3, 6}, {9, 10}});
  CHECK(pool.at(0) == 3);
  CHECK(pool.at(3) == 9);
  CHECK(pool.at(4) == 20);
  CHECK(pool.take(2) == Ranges{{3, 5}});
  CHECK(pool.take(3) == Ranges{{5, 6}, {9, 10}, {20, 21}});
  CHECK(pool == WindowPool(21));
}

TEST_CASE("neighbours become one range, and the last one joins what nobody has taken") {
  auto pool = pool_of(20, {{2, 4}, {6, 8}});
  pool.give_back({4, 6});
  CHECK(pool.returned() == Ranges{{2, 8}});
  pool.give_back({10, 20});
  CHECK(pool.next() == 10);
  pool.give_back({8, 10});
  CHECK(pool == WindowPool(2));
  pool.give_back({0, 2});
  CHECK(pool == WindowPool());
}

TEST_CASE("what was not taken cannot come back") {
  const auto pool = pool_of(20, {{3, 6}});
  for (const auto& range :
       Ranges{{5, 7}, {2, 4}, {3, 6}, {4, 5}, {0, 10}, {19, 21}, {20, 21}, {-1, 1}, {8, 7}}) {
    CHECK_FALSE(pool.has_taken(range));
    auto copy = pool;
    CHECK_THROWS_AS(copy.give_back(range), InternalError);
  }
  for (const auto& range : Ranges{{0, 3}, {6, 20}, {7, 7}, {4, 4}}) CHECK(pool.has_taken(range));
}

TEST_CASE("a pool is a set that hands out its least numbers") {
  std::mt19937 random(7);
  const auto below = [&](int64_t limit) {
    return std::uniform_int_distribution<int64_t>(0, limit - 1)(random);
  };
  for (int repeat = 0; repeat < 50; ++repeat) {
    constexpr int64_t kNumbers = 400;
    WindowPool pool;
    std::set<int64_t> expected;  // of the numbers below kNumbers
    for (int64_t number = 0; number < kNumbers; ++number) expected.insert(number);
    Ranges taken;
    for (int step = 0; step < 60; ++step) {
      if (pool.next() < kNumbers - 20 && below(2) == 0) {
        const auto ranges = pool.take(below(20));
        for (const auto number : numbers(ranges)) {
          REQUIRE(number == *expected.begin());
          expected.erase(expected.begin());
        }
        taken.insert(taken.end(), ranges.begin(), ranges.end());
      } else if (!taken.empty()) {
        // A part of a range that was taken, in the middle or at an end.
        auto& range = taken[static_cast<std::size_t>(below(std::ssize(taken)))];
        const int64_t begin = range.begin + below(range.size() + 1);
        const SequenceRange part{begin, begin + below(range.end - begin + 1)};
        const SequenceRange rest{part.end, range.end};
        range.end = part.begin;
        taken.push_back(rest);
        pool.give_back(part);
        for (const auto number : numbers({part})) REQUIRE(expected.insert(number).second);
      }
      int64_t k = 0;
      for (const auto number : expected) REQUIRE(pool.at(k++) == number);
      int64_t end = -1;  // of the range before
      for (const auto& range : pool.returned()) {
        REQUIRE(range.begin > end);
        REQUIRE(range.size() > 0);
        end = range.end;
      }
      REQUIRE(end < pool.next());
    }
  }
}

}  // namespace farstep
