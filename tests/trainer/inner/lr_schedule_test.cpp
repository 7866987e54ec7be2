#include "trainer/inner/lr_schedule.h"

#include <cmath>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

InnerConfig schedule(double warmup_fraction, double final_fraction) {
  InnerConfig config;
  config.peak_learning_rate = 2;
  config.warmup_fraction = warmup_fraction;
  config.final_fraction = final_fraction;
  return config;
}

}  // namespace

TEST_CASE("the learning rate rises linearly to the peak and falls to its final share") {
  const auto config = schedule(0.2, 0.1);
  CHECK(learning_rate(config, 0) == 0);
  CHECK(learning_rate(config, 0.05) == Approx(0.5));
  CHECK(learning_rate(config, 0.2) == 2);
  CHECK(learning_rate(config, 0.6) == Approx(2 * 0.55));
  CHECK(learning_rate(config, 1) == Approx(0.2));
}

TEST_CASE("the learning rate is the formula of a half cosine after warm-up") {
  for (const double warmup : {0.0, 0.05, 0.5, 0.999}) {
    for (const double last : {0.0, 0.1, 1.0}) {
      const auto config = schedule(warmup, last);
      for (int percent = 0; percent <= 100; ++percent) {
        const double p = percent / 100.0;
        const double wanted =
            p < warmup
                ? 2 * p / warmup
                : 2 * (last + (1 - last) * (1 + std::cos(M_PI * (p - warmup) / (1 - warmup))) / 2);
        CHECK(learning_rate(config, p) == Approx(wanted).margin(1e-12));
      }
    }
  }
}

TEST_CASE("without warm-up the run begins at the peak") {
  CHECK(learning_rate(schedule(0, 0.1), 0) == 2);
}

TEST_CASE("fresh moments warm up for as long as the second one averages") {
  InnerConfig config;
  config.adamw.beta2 = 0.95;
  CHECK(steps_of_warm_up(config) == 40);
  config.adamw.beta2 = 0.999;
  CHECK(steps_of_warm_up(config) == 2000);
  config.adamw.beta2 = 0;
  CHECK(steps_of_warm_up(config) == 2);
  config.optimizer = InnerOptimizer::kSgd;
  CHECK(steps_of_warm_up(config) == 0);
}

TEST_CASE("progress beyond the run is a bug") {
  const auto config = schedule(0.1, 0.1);
  CHECK_THROWS_AS(learning_rate(config, -0.01), InternalError);
  CHECK_THROWS_AS(learning_rate(config, 1.01), InternalError);
  CHECK_THROWS_AS(learning_rate(config, std::nan("")), InternalError);
}

}  // namespace farstep
