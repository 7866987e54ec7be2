#include "trainer/rate/rate_schedule.h"

#include <cmath>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr double kPi = 3.14159265358979323846;

RateConfig config_of(RateShape shape, double warmup_fraction, double final_fraction) {
  return {.schedule = shape, .warmup_fraction = warmup_fraction, .final_fraction = final_fraction};
}

// The schedules as formulas of the share p of the run.
double cosine(double p, double warmup, double last) {
  if (p < warmup) return p / warmup;
  return last + (1 - last) * (1 + std::cos(kPi * (p - warmup) / (1 - warmup))) / 2;
}
double wsd(double p, double warmup, double decay, double last) {
  if (p < warmup) return p / warmup;
  if (p <= 1 - decay) return 1;
  return last + (1 - last) * (1 - std::sqrt((p - (1 - decay)) / decay));
}

}  // namespace

TEST_CASE("the learning rate rises linearly to the peak and falls to its final share") {
  const auto config = config_of(RateShape::kCosine, 0.2, 0.1);
  const auto cycle = first_cycle(config, 10);
  CHECK(rate_share(config, cycle, 0) == 0);
  CHECK(rate_share(config, cycle, 0.5) == Approx(0.25));
  CHECK(rate_share(config, cycle, 2) == 1);
  CHECK(rate_share(config, cycle, 6) == Approx(0.55));
  CHECK(rate_share(config, cycle, 10) == Approx(0.1));
}

TEST_CASE("at every step the learning rate is the schedule's formula") {
  constexpr int64_t kRounds = 7, kSteps = 13;
  for (const double warmup : {0.0, 0.05, 0.5}) {
    for (const double last : {0.0, 0.1, 1.0}) {
      for (int64_t i = 0; i <= kRounds * kSteps; ++i) {
        const double position = position_after(i / kSteps, i % kSteps, kSteps);
        const double p = static_cast<double>(i) / (kRounds * kSteps);
        const auto falls = config_of(RateShape::kCosine, warmup, last);
        CHECK(rate_share(falls, first_cycle(falls, kRounds), position) ==
              Approx(cosine(p, warmup, last)).margin(1e-12));
        auto holds = config_of(RateShape::kWsd, warmup, last);
        for (const double decay : {0.1, 0.3, 0.5}) {
          holds.decay_fraction = decay;
          // Where the root begins, rounding of the share is as its root.
          CHECK(rate_share(holds, first_cycle(holds, kRounds), position) ==
                Approx(wsd(p, warmup, decay, last)).margin(1e-7));
        }
      }
    }
  }
}

TEST_CASE("without warm-up the run begins at the peak") {
  for (const auto shape : {RateShape::kCosine, RateShape::kWsd}) {
    const auto config = config_of(shape, 0, 0.1);
    CHECK(rate_share(config, first_cycle(config, 3), 0) == 1);
  }
}

TEST_CASE("a warm-up in rounds is as long in every run") {
  auto config = config_of(RateShape::kWsd, 0.05, 0);
  config.warmup_rounds = 3;
  for (const int64_t rounds : {6, 10, 400}) {
    const auto cycle = first_cycle(config, rounds);
    CHECK(rate_share(config, cycle, 1.5) == Approx(0.5));
    CHECK(rate_share(config, cycle, 3.001) == Approx(1));
  }
  // In a run that is not longer it only rises.
  const auto cycle = first_cycle(config, 2);
  CHECK(rate_share(config, cycle, 1) == Approx(0.5));
  CHECK(rate_share(config, cycle, 2) == 1);
}

TEST_CASE("a warm-up that reaches into the decay shortens it") {
  auto config = config_of(RateShape::kWsd, 0.5, 0.2);
  config.decay_fraction = 0.8;
  const auto cycle = first_cycle(config, 10);
  CHECK(rate_share(config, cycle, 5) == 1);
  CHECK(rate_share(config, cycle, 7.5) == Approx(0.2 + 0.8 * (1 - std::sqrt(0.5))));
  CHECK(rate_share(config, cycle, 10) == Approx(0.2));
}

TEST_CASE("after its cycle the learning rate stays") {
  for (const auto shape : {RateShape::kCosine, RateShape::kWsd}) {
    const auto config = config_of(shape, 0.1, 0.25);
    const auto cycle = first_cycle(config, 10);
    for (const double position : {10.0, 10.5, 400.0}) {
      CHECK(rate_share(config, cycle, position) == Approx(0.25));
    }
  }
}

TEST_CASE("the round before the decay is the last whose rate has not fallen") {
  for (const double decay : {0.05, 0.1, 0.2, 0.3, 0.35, 0.6, 1.0}) {
    auto config = config_of(RateShape::kWsd, 0, 0);
    config.decay_fraction = decay;
    for (const int64_t rounds : {1, 3, 10, 12, 20, 1000}) {
      const auto cycle = first_cycle(config, rounds);
      const auto before = rounds_before_decay(config, cycle);
      REQUIRE(before);
      CHECK(!has_fallen(config, cycle, static_cast<double>(*before)));
      CHECK(has_fallen(config, cycle, static_cast<double>(*before) + 1));
      CHECK(*before ==
            static_cast<int64_t>(std::floor((1 - decay) * static_cast<double>(rounds) + 1e-6)));
    }
  }
  const auto config = config_of(RateShape::kCosine, 0, 0);
  CHECK(!rounds_before_decay(config, first_cycle(config, 10)));
}

TEST_CASE("a position before the run, or a cycle without length, is a bug") {
  const auto config = config_of(RateShape::kCosine, 0.1, 0.1);
  CHECK_THROWS_AS(rate_share(config, first_cycle(config, 3), -0.01), InternalError);
  CHECK_THROWS_AS(rate_share(config, first_cycle(config, 3), std::nan("")), InternalError);
  CHECK_THROWS_AS(rate_share(config, {.begin = 2, .end = 2}, 2), InternalError);
}

}  // namespace farstep
