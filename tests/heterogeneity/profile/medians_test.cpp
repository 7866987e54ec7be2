#include "heterogeneity/profile/medians.h"

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {

TEST_CASE("The median is the middle value or the mean of the two in the middle") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({4, 1, 100, 2}) == 3);
  CHECK_THROWS_AS(median({}), InternalError);
}

TEST_CASE("Cases take turns and each gets its median") {
  FakeClock clock;
  std::vector<std::size_t> order;
  const auto timed = [&](std::size_t i) {
    order.push_back(i);
    return static_cast<double>(10 * i + order.size() % 3);
  };
  const auto medians = medians_in_turn(2, timed, {.least = 3, .most = 3, .seconds = 1}, clock);
  CHECK(order == std::vector<std::size_t>{0, 1, 0, 1, 0, 1});
  CHECK(medians == std::vector<double>{1, 11});
}

TEST_CASE("Repeats end when the time is up but not before the least number") {
  FakeClock clock;
  int runs = 0;
  const auto timed = [&](std::size_t) {
    ++runs;
    clock.advance(1);
    return 1.0;
  };
  medians_in_turn(1, timed, {.least = 3, .most = 100, .seconds = 0}, clock);
  CHECK(runs == 3);
  runs = 0;
  medians_in_turn(1, timed, {.least = 3, .most = 100, .seconds = 9.5}, clock);
  CHECK(runs == 10);
  runs = 0;
  medians_in_turn(1, timed, {.least = 3, .most = 7, .seconds = 1e9}, clock);
  CHECK(runs == 7);
}

}  // namespace farstep::heterogeneity
