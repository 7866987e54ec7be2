#include "trainer/inner/emulated_speed.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("a step lasts at least the emulated seconds") {
  EmulatedSpeed speed(EmulateConfig{.step_seconds = 0.5});
  CHECK(speed.step_lasts(0.2, 1) == 0.5);
  CHECK(speed.step_lasts(0.2, 9) == 0.5);
  CHECK(speed.step_lasts(0.7, 1) == 0.7);
}

TEST_CASE("a step lasts so many times its own time") {
  CHECK(EmulatedSpeed(EmulateConfig{.times = 3.0}).step_lasts(0.2, 1) == Approx(0.6));
  CHECK(EmulatedSpeed(EmulateConfig{.times = 1.0}).step_lasts(0.2, 1) == Approx(0.2));
}

TEST_CASE("a step lasts in proportion to its sequences") {
  EmulatedSpeed speed(EmulateConfig{.sequence_seconds = 0.1});
  CHECK(speed.step_lasts(0.2, 0) == 0.2);
  CHECK(speed.step_lasts(0.2, 1) == 0.2);
  CHECK(speed.step_lasts(0.2, 4) == Approx(0.4));
}

TEST_CASE("a device changes its speed at the given steps") {
  EmulatedSpeed speed(EmulateConfig{.step_seconds = 0.5, .changes = {{3, 2.0}, {5, 0.5}}});
  std::vector<double> seconds;
  for (int step = 0; step < 6; ++step) seconds.push_back(speed.step_lasts(0.1, 4));
  CHECK(seconds == std::vector<double>{0.5, 0.5, 1.0, 1.0, 0.25, 0.25});
  CHECK(speed.step_lasts(0.4, 4) == 0.4);  // nothing makes a step shorter than it is
}

TEST_CASE("without emulation a step lasts its own time") {
  CHECK(EmulatedSpeed(std::nullopt).step_lasts(0.2, 1) == 0.2);
}

}  // namespace farstep
