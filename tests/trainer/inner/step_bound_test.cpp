// No step may move a value by more than the bound says: with the worst gradients that are known,
// and with random ones.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/inner/make_optimizer.h"

namespace farstep {
namespace {

InnerConfig config_of(InnerOptimizer optimizer) {
  InnerConfig config;
  config.optimizer = optimizer;
  return config;
}

// Returns by how many learning rates AdamW moves a value in the last of `steps` steps, in double
// precision. The gradient of step i is c^(steps - i), for the c that reaches the bound.
double largest_ratio(double beta1, double beta2, int steps) {
  const double c = beta1 / beta2;
  double first = 0, second = 0;
  for (int i = 1; i <= steps; ++i) {
    const double gradient = std::pow(c, steps - i);
    first = beta1 * first + (1 - beta1) * gradient;
    second = beta2 * second + (1 - beta2) * gradient * gradient;
  }
  const double corrected = first / (1 - std::pow(beta1, steps));
  return corrected / std::sqrt(second / (1 - std::pow(beta2, steps)));
}

TEST_CASE("the bound of AdamW holds after any number of steps and is reached") {
  struct Row {
    double beta1, beta2, bound;
  };
  for (const auto& row : {Row{0.9, 0.95, 1.165},
                          {0.9, 0.999, 7.27},
                          {0, 0.9, 3.17},
                          {0.5, 0.5, 1},
                          {0.95, 0.99, 1.69}}) {
    auto config = config_of(InnerOptimizer::kAdamW);
    config.adamw.beta1 = row.beta1;
    config.adamw.beta2 = row.beta2;
    const double bound = step_bound(config, {}).per_rate;
    CHECK(bound == Approx(row.bound).epsilon(0.005));
    double largest = 0;
    for (int steps = 1; steps <= 12000; steps = steps < 50 ? steps + 1 : steps * 2) {
      largest = std::max(largest, largest_ratio(row.beta1, row.beta2, steps));
    }
    CHECK(largest <= bound * (1 + 1e-9));
    CHECK(largest > 0.99 * bound);
  }
  auto config = config_of(InnerOptimizer::kAdamW);
  config.adamw.beta1 = 0.98;  // no bound is known: its square is above beta2
  CHECK(step_bound(config, {}).per_rate == 0);
  CHECK(step_bound(config, {}).weight_decay == 0);
}

TEST_CASE("no optimizer moves a value further than its bound") {
  for (const auto optimizer :
       {InnerOptimizer::kAdamW, InnerOptimizer::kMuon, InnerOptimizer::kSgd}) {
    auto config = config_of(optimizer);
    config.muon.weight_decay = config.adamw.weight_decay = 0.3;
    Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
    parameters.initialise(1);
    const auto bound = step_bound(config, parameters.layout());
    REQUIRE(bound.per_rate > 0);
    const auto made = make_optimizer(config, parameters);
    constexpr double kRate = 0.05;
    double reached = 0;  // share of the bound
    at::manual_seed(3);
    for (int step = 0; step < 40; ++step) {
      const auto before = parameters.values().clone();
      parameters.gradients().copy_(at::randn({parameters.size()}) * std::pow(1.5, step % 7));
      made->clip_and_update(kRate, config.clip_norm);
      const auto moved = (parameters.values() - before).abs();
      const auto limit = kRate * (bound.per_rate + bound.weight_decay * before.abs());
      reached = std::max(reached, (moved / limit).max().item<double>());
    }
    CHECK(reached < 1.001);
    // Muon's is the maximum of a polynomial that random matrices rarely reach.
    CHECK(reached > (optimizer == InnerOptimizer::kAdamW ? 0.7 : 0.05));
  }
}

TEST_CASE("a plain descent without clipping has no bound") {
  auto config = config_of(InnerOptimizer::kSgd);
  config.clip_norm.reset();
  CHECK(step_bound(config, {}).per_rate == 0);
}

}  // namespace
}  // namespace farstep
