#include "trainer/run/round_timer.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("a round's time is steps and overhead") {
  FakeClock clock(50);
  RoundTimer timer(clock);
  timer.start_round(0.5);
  CHECK(timer.elapsed_seconds() == 0.5);
  CHECK(timer.step_seconds() == 0);
  clock.advance(1);  // evaluation
  for (int step = 0; step < 4; ++step) {
    clock.advance(2.25);
    timer.add_step(2);
  }
  CHECK(timer.elapsed_seconds() == 10.5);
  CHECK(timer.compute_seconds() == 8);
  CHECK(timer.overhead_seconds() == 2.5);
  CHECK(timer.step_seconds() == 2);
  timer.start_round(0);
  CHECK(timer.elapsed_seconds() == 0);
  CHECK(timer.compute_seconds() == 0);
}

TEST_CASE("what a site waits for a sync is not its own time") {
  FakeClock clock(50);
  RoundTimer timer(clock);
  timer.start_round(0);
  clock.advance(5);
  timer.add_step(2);
  timer.add_wait(2.5);
  CHECK(timer.elapsed_seconds() == 5);
  CHECK(timer.waited_seconds() == 2.5);
  CHECK(timer.overhead_seconds() == 0.5);
  timer.start_round(0);
  CHECK(timer.waited_seconds() == 0);
}

TEST_CASE("time before an interruption counts for the deadline and not as overhead") {
  FakeClock clock(50);
  RoundTimer timer(clock);
  timer.resume_round(7);
  clock.advance(2);
  timer.add_step(2);
  CHECK(timer.elapsed_seconds() == 9);
  CHECK(timer.overhead_seconds() == 0);
}

}  // namespace farstep
