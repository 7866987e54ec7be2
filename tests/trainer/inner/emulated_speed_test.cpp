#include "trainer/inner/emulated_speed.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {

// Seconds that a step lasts in all whose own work takes `own_seconds`.
double step_seconds(const std::optional<EmulateConfig>& config, double own_seconds) {
  FakeClock clock(100);
  const EmulatedSpeed speed(config, clock);
  const double begin = clock.now_seconds();
  clock.advance(own_seconds);
  speed.end_step(begin);
  return clock.now_seconds() - begin;
}

EmulateConfig emulate(std::optional<double> step_seconds, std::optional<double> times) {
  EmulateConfig config;
  config.step_seconds = step_seconds;
  config.times = times;
  return config;
}

}  // namespace

TEST_CASE("a step lasts at least the emulated seconds") {
  CHECK(step_seconds(emulate(0.5, std::nullopt), 0.2) == Approx(0.5));
  CHECK(step_seconds(emulate(0.5, std::nullopt), 0.7) == Approx(0.7));
}

TEST_CASE("a step lasts so many times its own time") {
  CHECK(step_seconds(emulate(std::nullopt, 3.0), 0.2) == Approx(0.6));
  CHECK(step_seconds(emulate(std::nullopt, 1.0), 0.2) == Approx(0.2));
}

TEST_CASE("of seconds and times the longer holds") {
  CHECK(step_seconds(emulate(0.5, 3.0), 0.1) == Approx(0.5));
  CHECK(step_seconds(emulate(0.5, 3.0), 0.2) == Approx(0.6));
}

TEST_CASE("without emulation a step lasts its own time") {
  CHECK(step_seconds(std::nullopt, 0.2) == Approx(0.2));
  CHECK(step_seconds(emulate(std::nullopt, std::nullopt), 0.2) == Approx(0.2));
}

}  // namespace farstep
