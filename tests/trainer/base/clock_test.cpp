#include "trainer/base/clock.h"

#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"

using namespace farstep;

TEST_CASE("the real clock never goes back and is past a deadline it slept until") {
  RealClock clock;
  double last = clock.now_seconds();
  for (int i = 0; i < 1000; ++i) {
    const double now = clock.now_seconds();
    REQUIRE(now >= last);
    last = now;
  }
  for (int i = 0; i < 10; ++i) {
    const double deadline = clock.now_seconds() + 0.0005;
    clock.sleep_until(deadline);
    REQUIRE(clock.now_seconds() >= deadline);
  }
}

TEST_CASE("a deadline that is past does not wait") {
  RealClock clock;
  const double before = clock.now_seconds();
  clock.sleep_until(before - 1000);
  clock.sleep_until(-1);
  CHECK(clock.now_seconds() - before < 1);
}

TEST_CASE("unix seconds are the system's and move with the steady clock") {
  RealClock clock;
  const double system =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  CHECK(std::abs(clock.unix_seconds() - system) < 1);
  const double offset = clock.unix_seconds() - clock.now_seconds();
  CHECK(clock.unix_seconds() - clock.now_seconds() == Approx(offset).margin(0.1));
}

TEST_CASE("a fake clock moves only when told to") {
  FakeClock clock(5);
  CHECK(clock.now_seconds() == 5);
  clock.advance(2.5);
  CHECK(clock.now_seconds() == 7.5);
  clock.sleep_until(7);
  CHECK(clock.now_seconds() == 7.5);
  clock.sleep_until(10);
  CHECK(clock.now_seconds() == 10);
  CHECK(clock.unix_seconds() == 10);
}

TEST_CASE("no advance of a fake clock is lost between threads") {
  FakeClock clock;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&clock] {
        for (int i = 0; i < 10000; ++i) clock.advance(1);
      });
    }
  }
  CHECK(clock.now_seconds() == 40000);
}
