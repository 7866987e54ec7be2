#include "heterogeneity/plan/step_time.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace farstep;

namespace {

StepTime step_of(double step, double micro, double sequence, int64_t batch, int64_t micro_batch) {
  const StepTimeFit truth{step, micro, sequence, 1, 0};
  return {micro_batch, batch, truth.seconds(batch, micro_batch)};
}

}  // namespace

TEST_CASE("nothing follows from no measurement") {
  REQUIRE_FALSE(fit_step_time({}));
}

TEST_CASE("one measurement promises no speed that was not seen") {
  const auto fit = fit_step_time(std::vector<StepTime>{{4, {}, 0.25}});
  REQUIRE(fit);
  REQUIRE(fit->seconds(4, 4) == Approx(0.25));
  REQUIRE(fit->seconds(1, 1) == Approx(0.25));
  REQUIRE(fit->seconds(2, 1) == Approx(0.25));
  REQUIRE(fit->seconds(8, 4) == Approx(0.5));
  REQUIRE(fit->seconds(12, 12) == Approx(0.75));
  REQUIRE(fit->relative_error == Approx(0).margin(1e-12));
}

TEST_CASE("the costs of exact measurements are found") {
  for (const double step : {0.0, 0.02, 0.3}) {
    for (const double micro : {0.0, 0.01}) {
      for (const double sequence : {0.0, 0.05}) {
        if (step + micro + sequence == 0) continue;
        const auto fit = fit_step_time(std::vector<StepTime>{
            step_of(step, micro, sequence, 2, 2), step_of(step, micro, sequence, 8, 8),
            step_of(step, micro, sequence, 8, 4), step_of(step, micro, sequence, 16, 2)});
        REQUIRE(fit);
        REQUIRE(fit->step_seconds == Approx(step).margin(1e-9));
        REQUIRE(fit->micro_batch_seconds == Approx(micro).margin(1e-9));
        REQUIRE(fit->sequence_seconds == Approx(sequence).margin(1e-9));
        REQUIRE(fit->least_batch == 1);
        REQUIRE(fit->relative_error < 1e-9);
      }
    }
  }
}

TEST_CASE("two micro-batches give a line and no cost a micro-batch") {
  const auto fit = fit_step_time(std::vector<StepTime>{{4, {}, 0.25}, {8, {}, 0.45}});
  REQUIRE(fit);
  REQUIRE(fit->step_seconds == Approx(0.05));
  REQUIRE(fit->micro_batch_seconds == 0);
  REQUIRE(fit->sequence_seconds == Approx(0.05));
  REQUIRE(fit->seconds(16, 8) == Approx(0.85));
}

TEST_CASE("no cost is below zero whatever was measured") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> seconds(0.01, 1);
  std::uniform_int_distribution<int64_t> size(1, 32);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<StepTime> measured(1 + trial % 5);
    for (auto& step : measured) {
      step.micro_batch = size(random);
      if (trial % 2 == 0) step.batch = step.micro_batch * (1 + trial % 3);
      step.seconds = seconds(random);
    }
    const auto fit = fit_step_time(measured);
    REQUIRE(fit);
    REQUIRE(fit->step_seconds >= 0);
    REQUIRE(fit->micro_batch_seconds >= 0);
    REQUIRE(fit->sequence_seconds >= 0);
    REQUIRE(fit->seconds(1, 1) > 0);
    double largest = 0;
    for (const auto& step : measured) {
      const double batch = static_cast<double>(step.batch.value_or(step.micro_batch));
      const double error = fit->seconds(static_cast<int64_t>(batch), step.micro_batch);
      largest = std::max(largest, std::abs(error - step.seconds) / step.seconds);
    }
    REQUIRE(fit->relative_error == Approx(largest));
  }
}

TEST_CASE("no other costs fit better") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  std::uniform_real_distribution<double> factor(0.8, 1.25);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<StepTime> measured;
    for (const auto& [batch, micro_batch] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {4, 4}, {8, 8}, {8, 4}, {16, 4}}) {
      measured.push_back(step_of(0.03, 0.005, 0.04, batch, micro_batch));
      measured.back().seconds *= noise(random);
    }
    const auto squared_error = [&](const StepTimeFit& fit) {
      double sum = 0;
      for (const auto& step : measured) {
        const double relative = fit.seconds(*step.batch, step.micro_batch) / step.seconds - 1;
        sum += relative * relative;
      }
      return sum;
    };
    const auto fit = fit_step_time(measured);
    REQUIRE(fit->relative_error < 0.06);
    for (int other = 0; other < 50; ++other) {
      auto changed = *fit;
      changed.step_seconds *= factor(random);
      changed.micro_batch_seconds *= factor(random);
      changed.sequence_seconds *= factor(random);
      REQUIRE(squared_error(*fit) <= squared_error(changed) + 1e-9);
    }
  }
}
