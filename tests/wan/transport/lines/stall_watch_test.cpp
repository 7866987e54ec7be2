#include "wan/transport/lines/stall_watch.h"

#include <atomic>

#include "tests/support/catch.h"

using namespace farstep::wan;

TEST_CASE("a way stands on which nothing is acknowledged for seconds, and goes on with an answer") {
  StallWatch watch;
  int changes = 0;
  const auto look = [&](double now_seconds, bool is_unanswered, uint64_t answers) {
    watch.look(now_seconds, is_unanswered, answers);
    changes += watch.has_changed() ? 1 : 0;
    return watch.stands();
  };
  CHECK_FALSE(look(0, false, 7));
  CHECK_FALSE(look(3600, false, 7));  // idle for an hour
  CHECK_FALSE(look(3601, true, 7));
  CHECK_FALSE(look(3605, true, 7));
  CHECK(changes == 0);
  CHECK(look(3606, true, 7));
  CHECK(look(3700, true, 7));
  CHECK(changes == 1);
  CHECK_FALSE(look(3701, true, 8));
  CHECK(changes == 2);
  // Slow answers are answers.
  for (int i = 0; i < 10; ++i) CHECK_FALSE(look(3701 + 4 * i, true, 8 + i));
  CHECK_FALSE(look(4000, false, 20));
}

TEST_CASE("work is done every second until its thread is asked to stop") {
  std::atomic<int> count = 0;
  {
    const auto thread = every_second([&] {
      ++count;
      count.notify_all();
    });
    count.wait(0);
  }
  CHECK(count > 0);
}
