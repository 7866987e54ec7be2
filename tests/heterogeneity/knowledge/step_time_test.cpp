#include "heterogeneity/knowledge/step_time.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;

namespace {

StepTime step_of(double step, double micro, double sequence, int64_t batch, int64_t micro_batch) {
  const StepTimeFit truth{step, micro, sequence};
  return {micro_batch, batch, truth.line_seconds(batch, micro_batch)};
}

// Times of a machine on which a pass of 16 takes longer than four of 4: 0.03 s once a step, and
// 0.1, 0.22 and 0.6 s a pass.
const std::vector<StepTime> kSuperlinear{
    {4, {}, 0.13}, {4, 16, 0.43}, {8, {}, 0.25}, {16, {}, 0.63}};

std::vector<StepTime> random_steps(std::mt19937& random, int trial) {
  std::uniform_real_distribution<double> seconds(0.01, 1);
  std::uniform_int_distribution<int64_t> size(1, 32);
  std::vector<StepTime> measured(1 + trial % 5);
  for (auto& step : measured) {
    step.micro_batch = size(random);
    if (trial % 2 == 0) step.batch = step.micro_batch * (1 + trial % 3);
    if (trial % 7 == 0) step.batch = size(random);
    step.seconds = seconds(random);
  }
  return measured;
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
        for (const auto& [batch, micro_batch] : std::vector<std::pair<int64_t, int64_t>>{
                 {1, 1}, {2, 2}, {5, 5}, {12, 4}, {13, 4}, {30, 6}, {16, 16}, {96, 32}}) {
          REQUIRE(fit->seconds(batch, micro_batch) ==
                  Approx(step_of(step, micro, sequence, batch, micro_batch).seconds));
        }
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
  for (int trial = 0; trial < 500; ++trial) {
    const auto measured = random_steps(random, trial);
    const auto fit = fit_step_time(measured);
    REQUIRE(fit);
    REQUIRE(fit->step_seconds >= 0);
    REQUIRE(fit->micro_batch_seconds >= 0);
    REQUIRE(fit->sequence_seconds >= 0);
    REQUIRE(fit->update_seconds >= 0);
    REQUIRE(fit->passes.front().seconds >= 0);
    REQUIRE(fit->seconds(1, 1) > 0);
    double largest = 0;
    for (const auto& step : measured) {
      const double line =
          fit->line_seconds(step.batch.value_or(step.micro_batch), step.micro_batch);
      largest = std::max(largest, std::abs(line - step.seconds) / step.seconds);
    }
    REQUIRE(fit->relative_error == Approx(largest));
  }
}

TEST_CASE("a larger batch or pass takes no less whatever was measured") {
  std::mt19937 random(6);
  for (int trial = 0; trial < 100; ++trial) {
    const auto fit = fit_step_time(random_steps(random, trial));
    for (int64_t micro_batch = 1; micro_batch <= 40; micro_batch += 3) {
      for (int64_t batch = 1; batch < 80; ++batch) {
        REQUIRE(fit->seconds(batch + 1, micro_batch) >= fit->seconds(batch, micro_batch) - 1e-12);
      }
      REQUIRE(fit->seconds(micro_batch + 1, 41) >= fit->seconds(micro_batch, 41) - 1e-12);
    }
  }
}

TEST_CASE("times that grow faster than the micro-batch are followed") {
  const auto fit = fit_step_time(kSuperlinear);
  REQUIRE(fit->relative_error > 0.05);
  for (const auto& step : kSuperlinear) {
    REQUIRE(fit->seconds(step.batch.value_or(step.micro_batch), step.micro_batch) ==
            Approx(step.seconds));
  }
  REQUIRE(fit->seconds(24, 4) == Approx(0.03 + 6 * 0.1));
  REQUIRE(fit->seconds(24, 8) == Approx(0.03 + 3 * 0.22));
  REQUIRE(fit->seconds(64, 16) == Approx(0.03 + 4 * 0.6));
  REQUIRE(fit->seconds(12, 6) == Approx(0.03 + 2 * 0.16));
  REQUIRE(fit->seconds(24, 12) == Approx(0.03 + 2 * 0.41));
  REQUIRE(fit->seconds(28, 8) == Approx(0.03 + 3 * 0.22 + 0.1));
  REQUIRE(fit->seconds(32, 32) == Approx(0.03 + 0.6 + 16 * fit->sequence_seconds));
}

TEST_CASE("a pass smaller than all measured ones makes no sequence cheaper") {
  const auto fit = fit_step_time(kSuperlinear);
  for (const int64_t micro_batch : {1, 2, 3}) {
    REQUIRE(fit->seconds(12, micro_batch) >= Approx(fit->seconds(12, 4)));
  }
}

TEST_CASE("the cost once a step is the line's where nothing accumulates") {
  const auto fit = fit_step_time(std::vector<StepTime>{{4, {}, 0.25}, {8, {}, 0.45}});
  REQUIRE(fit->update_seconds == Approx(0.05));
  REQUIRE(fit->seconds(8, 4) == Approx(0.45));
  REQUIRE(fit->seconds(32, 16) == Approx(0.05 + 2 * 0.8));
}

TEST_CASE("steps that all last as long cost nothing a pass") {
  const auto fit =
      fit_step_time(std::vector<StepTime>{{4, {}, 0.1}, {4, 16, 0.1}, {8, {}, 0.1}, {16, {}, 0.1}});
  for (const int64_t batch : {1, 4, 16, 100}) REQUIRE(fit->seconds(batch, 4) == Approx(0.1));
}

TEST_CASE("a pass that was timed as faster than a smaller one counts as much") {
  const auto fit = fit_step_time(
      std::vector<StepTime>{{4, {}, 0.11}, {4, 16, 0.41}, {8, {}, 0.09}, {16, {}, 0.31}});
  REQUIRE(fit->update_seconds == Approx(0.01));
  REQUIRE(fit->seconds(8, 8) == Approx(0.11));
  REQUIRE(fit->seconds(16, 16) == Approx(0.31));
}

TEST_CASE("several measurements of one step count as their mean") {
  const auto fit = fit_step_time(std::vector<StepTime>{
      {4, {}, 0.099}, {4, {}, 0.101}, {4, 12, 0.297}, {4, 12, 0.303}, {8, {}, 0.2}});
  REQUIRE(fit->seconds(4, 4) == Approx(0.1).epsilon(1e-3));
  REQUIRE(fit->seconds(40, 4) == Approx(1).epsilon(2e-3));
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
        const double relative = fit.line_seconds(*step.batch, step.micro_batch) / step.seconds - 1;
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
