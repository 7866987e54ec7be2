#include "trainer/site/round_timer.h"

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"

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
  timer.resume_round(7, {});
  clock.advance(2);
  timer.add_step(2);
  CHECK(timer.elapsed_seconds() == 9);
  CHECK(timer.overhead_seconds() == 0);
}

TEST_CASE("steps before an interruption count as if there had been none") {
  FakeClock clock(50);
  RoundTimer whole(clock);
  whole.start_round(0);
  for (const double seconds : {5.0, 2.0, 3.0, 2.0}) {
    clock.advance(seconds);
    whole.add_step(seconds);
  }
  clock.advance(0.5);
  RoundTimer resumed(clock);
  resumed.resume_round(whole.elapsed_seconds(), whole.steps());
  CHECK(resumed.elapsed_seconds() == whole.elapsed_seconds());
  CHECK(resumed.measured_step_seconds() == whole.measured_step_seconds());
  CHECK(resumed.step_seconds() == whole.step_seconds());
  CHECK(resumed.compute_seconds() == 12);
  CHECK(resumed.overhead_seconds() == 0);
  clock.advance(1);
  CHECK(resumed.overhead_seconds() == 1);
  CHECK(resumed.elapsed_seconds() == 13.5);
}

}  // namespace farstep
