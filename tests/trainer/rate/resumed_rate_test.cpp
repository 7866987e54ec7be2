#include "trainer/rate/resumed_rate.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

RateConfig of(RateShape shape, RateExtension extension = RateExtension::kHold) {
  return {.schedule = shape, .warmup_rounds = 1, .extension = extension};
}

RateState at(const RateConfig& config, double position, int64_t rounds) {
  return rate_state(config, first_cycle(config, rounds), position);
}

}  // namespace

TEST_CASE("a longer run does not raise a rate that has fallen") {
  for (const auto shape : {RateShape::kCosine, RateShape::kWsd}) {
    const auto config = of(shape);
    for (const double position : {8.5, 9.0, 9.99, 10.0}) {
      const auto saved = at(config, position, 10);
      const auto cycle = resumed_cycle(config, saved, 20);
      double before = rate_share(config, saved.cycle, position);
      for (double later = position; later <= 20; later += 0.25) {
        const double now = rate_share(config, cycle, later);
        CHECK(now <= before);
        before = now;
      }
      CHECK(before == Approx(config.final_fraction));
      CHECK(rate_jump_text(config, saved, cycle).empty());
      CHECK_THAT(resumed_rate_text(config, saved, cycle, 20),
                 Catch::Contains("ends after round 10") && Catch::Contains("stays at 4e-05"));
    }
  }
}

TEST_CASE("a longer run of wsd that has not decayed is that which was planned so long") {
  const auto config = of(RateShape::kWsd);
  for (const double position : {0.0, 0.5, 1.0, 4.0, 8.0}) {
    const auto cycle = resumed_cycle(config, at(config, position, 10), 20);
    CHECK(cycle == first_cycle(config, 20));
  }
}

TEST_CASE("a warm-up by a share of the run stays as long as it was when the run is made longer") {
  auto config = of(RateShape::kWsd);
  config.warmup_rounds.reset();
  config.warmup_fraction = 0.25;
  const auto saved = at(config, 1, 8);
  const auto cycle = resumed_cycle(config, saved, 16);
  CHECK(cycle.warmup_fraction == 0.125);
  CHECK(rate_jump_text(config, saved, cycle).empty());
}

TEST_CASE("a restart rises from the last rate to the peak and falls until the new end") {
  for (const auto shape : {RateShape::kCosine, RateShape::kWsd}) {
    const auto config = of(shape, RateExtension::kRestart);
    const auto saved = at(config, 10, 10);
    const auto cycle = resumed_cycle(config, saved, 20);
    CHECK(rate_share(config, cycle, 10) == Approx(config.final_fraction));
    CHECK(rate_share(config, cycle, 10.5) == Approx((config.final_fraction + 1) / 2));
    CHECK(rate_share(config, cycle, 11) == Approx(1));
    CHECK(rate_share(config, cycle, 20) == Approx(config.final_fraction));
    CHECK(rate_jump_text(config, saved, cycle).empty());
    CHECK_THAT(resumed_rate_text(config, saved, cycle, 20), Catch::Contains("restart"));
    // A resume in the new cycle changes nothing.
    const auto again = rate_state(config, cycle, 15);
    CHECK(resumed_cycle(config, again, 20) == cycle);
    CHECK(resumed_rate_text(config, again, cycle, 20).empty());
  }
}

TEST_CASE("a run that is held can restart at a later resume") {
  auto config = of(RateShape::kCosine);
  const auto held = resumed_cycle(config, at(config, 10, 10), 20);
  config.extension = RateExtension::kRestart;
  CHECK(resumed_cycle(config, rate_state(config, held, 12), 20).begin == 12);
}

TEST_CASE("a shorter run falls to the end that it has now, and says that its rate is another one") {
  for (const auto shape : {RateShape::kCosine, RateShape::kWsd}) {
    const auto config = of(shape);
    const auto saved = at(config, 9, 20);
    const auto cycle = resumed_cycle(config, saved, 10);
    CHECK(cycle == first_cycle(config, 10));
    CHECK_THAT(rate_jump_text(config, saved, cycle), Catch::Contains("instead of"));
    CHECK_THAT(resumed_rate_text(config, saved, cycle, 10),
               Catch::Contains("after round 10 instead of 20"));
  }
}

TEST_CASE("a run that is over, or goes on unchanged, keeps its schedule") {
  for (const auto shape : {RateShape::kCosine, RateShape::kWsd}) {
    const auto config = of(shape, RateExtension::kRestart);
    for (const int64_t rounds : {5, 9, 10}) {
      const auto saved = at(config, 9, 10);
      CHECK(resumed_cycle(config, saved, rounds) == saved.cycle);
    }
  }
}

TEST_CASE("another peak is said, with both rates") {
  auto config = of(RateShape::kWsd);
  const auto saved = at(config, 5, 10);
  config.peak_learning_rate = 1e-3;
  CHECK_THAT(rate_jump_text(config, saved, resumed_cycle(config, saved, 10)),
             Catch::Contains("at 0.001 instead of 0.0004"));
}

TEST_CASE("a site that comes to a run is told its rate and how long the schedule is") {
  const auto config = of(RateShape::kWsd);
  const auto cycle = first_cycle(config, 10);
  const auto peak = fmt::format("the learning rate is {:.3g}, ", config.peak_learning_rate);
  CHECK(joined_rate_text(config, cycle, 5, 10) == peak + "and its schedule ends after round 10");
  const auto end = fmt::format("the learning rate is {:.3g}, ",
                               config.peak_learning_rate * rate_share(config, cycle, 12));
  CHECK(joined_rate_text(config, cycle, 12, 15) == end + "and stays as it is after round 10");
}

TEST_CASE("a cycle that ends before it begins is refused") {
  CHECK_THROWS_AS(require_whole({.begin = 3, .end = 3}), DataError);
  CHECK_NOTHROW(require_whole({.begin = 3, .end = 4}));
}

}  // namespace farstep
