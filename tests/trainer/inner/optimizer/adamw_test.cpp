#include "trainer/inner/optimizer/adamw.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"

namespace farstep {

namespace {

AdamWConfig adamw_config() {
  AdamWConfig config;
  config.beta1 = 0.8;
  config.beta2 = 0.95;
  config.epsilon = 1e-3;
  config.weight_decay = 0.2;
  return config;
}

// Gradients that differ from element to element and step to step.
void set_gradients(Parameters& parameters, int step) {
  auto gradients = parameters.gradients();
  gradients.copy_(at::sin(at::arange(gradients.numel(), at::kFloat) * 0.37 + step));
}

// AdamW on one number, in fp64, as torch's documentation writes it.
struct ScalarAdamW {
  double value, first = 0, second = 0;

  void update(const AdamWConfig& config, bool decays, double rate, double gradient, int step) {
    if (decays) value -= rate * config.weight_decay * value;
    first = config.beta1 * first + (1 - config.beta1) * gradient;
    second = config.beta2 * second + (1 - config.beta2) * gradient * gradient;
    const double corrected_first = first / (1 - std::pow(config.beta1, step));
    const double corrected_second = second / (1 - std::pow(config.beta2, step));
    value -= rate * corrected_first / (std::sqrt(corrected_second) + config.epsilon);
  }
};

}  // namespace

TEST_CASE("adamw follows an fp64 oracle over many steps and does not decay norms") {
  const auto config = adamw_config();
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  parameters.initialise(1);
  AdamW optimizer(config, parameters, parameters.layout());
  std::vector<ScalarAdamW> oracle;
  for (const float value : parameters.host_values().pull()) oracle.push_back({.value = value});
  for (int step = 1; step <= 60; ++step) {
    const double rate = 0.01 / step;
    set_gradients(parameters, step);
    optimizer.update(rate);
    const auto* gradients = parameters.gradients().const_data_ptr<float>();
    for (const auto& spec : parameters.layout()) {
      for (int64_t i = spec.offset; i < spec.end(); ++i) {
        oracle[static_cast<std::size_t>(i)].update(config, spec.decays, rate, gradients[i], step);
      }
    }
  }
  const auto values = parameters.host_values().pull();
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::abs(values[i] - oracle[i].value));
  }
  // Each of the 60 updates rounds a value that stays below 2 to fp32 once.
  CHECK(worst < 60 * std::numeric_limits<float>::epsilon());
}

TEST_CASE("adamw leaves the gradients as they are") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  AdamW optimizer(adamw_config(), parameters, parameters.layout());
  set_gradients(parameters, 1);
  const auto before = parameters.gradients().clone();
  optimizer.update(0.1);
  CHECK(at::equal(parameters.gradients(), before));
}

TEST_CASE("adamw writes the bf16 copy of its values and leaves the same values with one") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU),
      without(llama_layout(kSmallConfig), at::kCPU);
  parameters.initialise(1);
  without.initialise(1);
  const auto copy = parameters.bf16_values();
  AdamW optimizer(adamw_config(), parameters, parameters.layout());
  AdamW other(adamw_config(), without, without.layout());
  for (int step = 1; step <= 3; ++step) {
    set_gradients(parameters, step);
    set_gradients(without, step);
    optimizer.update(0.01);
    other.update(0.01);
    CHECK(at::equal(copy, parameters.values().to(at::kBFloat16)));
    CHECK(parameters.bf16_values().const_data_ptr() == copy.const_data_ptr());
    CHECK(at::equal(parameters.values(), without.values()));
  }
}

TEST_CASE("adamw goes on from its saved state with the same bits") {
  const auto train = [](Parameters& parameters, AdamW& optimizer, int first, int last) {
    for (int step = first; step <= last; ++step) {
      set_gradients(parameters, step);
      optimizer.update(0.01);
    }
  };
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  parameters.initialise(1);
  AdamW optimizer(adamw_config(), parameters, parameters.layout());
  train(parameters, optimizer, 1, 5);

  Parameters restored(llama_layout(kSmallConfig), at::kCPU);
  restored.values().copy_(parameters.values());
  AdamW other(adamw_config(), restored, restored.layout());
  const auto from = optimizer.pull_state();
  const auto into = other.pull_state();
  REQUIRE(from.size() == 3);
  for (std::size_t i = 0; i < from.size(); ++i) {
    CHECK(from[i].name == std::vector<std::string>{"exp_avg", "exp_avg_sq", "step"}[i]);
    REQUIRE(from[i].bytes.size() == into[i].bytes.size());
    CHECK(from[i].bytes.size() ==
          static_cast<std::size_t>(num_elements(from[i].shape)) * size_of(from[i].dtype));
    std::memcpy(into[i].bytes.data(), from[i].bytes.data(), from[i].bytes.size());
  }
  other.push_state();

  train(parameters, optimizer, 6, 9);
  train(restored, other, 6, 9);
  CHECK(at::equal(parameters.values(), restored.values()));
}

TEST_CASE("adamw of some groups changes them alone and as adamw of all would") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU),
      wanted(llama_layout(kSmallConfig), at::kCPU);
  parameters.initialise(1);
  wanted.initialise(1);
  // Every other parameter: neither all that decay, nor neighbours.
  std::vector<ParameterSpec> even, odd;
  for (const auto& spec : parameters.layout())
    (even.size() > odd.size() ? odd : even).push_back(spec);
  AdamW first(adamw_config(), parameters, even), second(adamw_config(), parameters, odd);
  AdamW all(adamw_config(), wanted, wanted.layout());
  for (int step = 1; step <= 5; ++step) {
    set_gradients(parameters, step);
    set_gradients(wanted, step);
    const auto before = parameters.values().clone();
    first.update(0.01);
    for (const auto& spec : odd) {
      CHECK(at::equal(parameters.values().narrow(0, spec.offset, spec.size()),
                      before.narrow(0, spec.offset, spec.size())));
    }
    second.update(0.01);
    all.update(0.01);
    CHECK(at::allclose(parameters.values(), wanted.values(), 1e-6, 1e-7));
  }
  CHECK(first.pull_state()[0].shape[0] + second.pull_state()[0].shape[0] == parameters.size());
}

}  // namespace farstep
