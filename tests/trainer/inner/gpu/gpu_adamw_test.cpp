#include "trainer/inner/gpu/gpu_adamw.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/model/gpu_ops/tested_gpu.h"
#include "tests/trainer/model/llama/random_model.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/inner/optimizer/adamw.h"

namespace farstep {

namespace {

constexpr double kLearningRate = 0.01;

AdamWConfig config() {
  AdamWConfig config;
  config.epsilon = 1e-6;
  return config;
}

std::vector<float> values_of(const NamedBuffer& buffer) {
  const auto* const begin = reinterpret_cast<const float*>(buffer.bytes.data());
  return {begin, begin + num_elements(buffer.shape)};
}

int64_t step_of(Optimizer& optimizer) {
  return *reinterpret_cast<const int64_t*>(optimizer.pull_state()[2].bytes.data());
}

bool close(const NamedBuffer& found, const NamedBuffer& wanted, double absolute) {
  return at::allclose(at::tensor(values_of(found)), at::tensor(values_of(wanted)), 1e-5, absolute);
}

}  // namespace

TEST_CASE("an update on a GPU is a CPU's over many steps and keeps the bf16 copy", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  for (const std::optional<double> clip_norm : {std::optional(0.7), std::optional<double>()}) {
    Parameters parameters(llama_layout(kSmallConfig), *gpu),
        wanted(llama_layout(kSmallConfig), at::kCPU);
    const auto seed = fresh_seed();
    randomise(parameters, seed);
    randomise(wanted, seed);
    parameters.bf16_values();
    const auto optimizer = make_gpu_adamw(config(), parameters, parameters.layout());
    AdamW oracle(config(), wanted, wanted.layout());
    for (int i = 0; i < 10; ++i) {
      auto gradients = wanted.gradients();
      gradients.normal_();
      auto own = parameters.gradients();
      own.copy_(gradients);
      const auto version = parameters.values()._version();
      const double norm = optimizer->clip_and_update(kLearningRate, clip_norm);
      CHECK(norm == Approx(oracle.clip_and_update(kLearningRate, clip_norm)).epsilon(1e-9));
      CHECK(parameters.values()._version() > version);
      CHECK(at::allclose(parameters.values().cpu(), wanted.values(), 1e-5, 1e-6));
      CHECK(close(optimizer->pull_state()[0], oracle.pull_state()[0], 1e-6));
      CHECK(close(optimizer->pull_state()[1], oracle.pull_state()[1], 1e-7));
      CHECK(at::equal(parameters.bf16_values(), parameters.values().to(at::kBFloat16)));
    }
    CHECK(step_of(*optimizer) == 10);
  }
}

TEST_CASE("an update of some groups on a GPU is clipped by the norm of all", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  Parameters parameters(llama_layout(kSmallConfig), *gpu),
      wanted(llama_layout(kSmallConfig), at::kCPU);
  const auto groups = std::span(wanted.layout()).subspan(2, 5);
  auto own = parameters.gradients(), gradients = wanted.gradients();
  gradients.normal_();
  own.copy_(gradients);
  AdamW oracle(config(), wanted, groups);
  const auto optimizer = make_gpu_adamw(config(), parameters, groups);
  CHECK(optimizer->clip_and_update(kLearningRate, 0.1) ==
        Approx(oracle.clip_and_update(kLearningRate, 0.1)).epsilon(1e-9));
  CHECK(at::allclose(parameters.values().cpu(), wanted.values(), 1e-5, 1e-6));
  CHECK(close(optimizer->pull_state()[0], oracle.pull_state()[0], 1e-6));
}

TEST_CASE("an update on a GPU from gradients that are not finite changes nothing", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  Parameters parameters(llama_layout(kSmallConfig), *gpu);
  randomise(parameters, fresh_seed());
  const auto before = parameters.values().clone();
  const auto optimizer = make_gpu_adamw(config(), parameters, parameters.layout());
  auto gradients = parameters.gradients();
  gradients[3] = std::nanf("");
  CHECK(!std::isfinite(optimizer->clip_and_update(kLearningRate, 1)));
  CHECK(at::equal(parameters.values(), before));
  const auto state = optimizer->pull_state();
  for (const auto& moments : {state[0], state[1]}) {
    CHECK(values_of(moments) == std::vector<float>(static_cast<std::size_t>(parameters.size())));
  }
  CHECK(step_of(*optimizer) == 0);
}

TEST_CASE("an update on a GPU is known late and none is taken after one that was not", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  Parameters parameters(llama_layout(kSmallConfig), *gpu);
  randomise(parameters, fresh_seed());
  const auto optimizer = make_gpu_adamw(config(), parameters, parameters.layout());
  auto* const update = optimizer->gpu_update();
  REQUIRE(update != nullptr);
  auto gradients = parameters.gradients();
  const auto start = [&](float gradient) {
    gradients.fill_(gradient);
    update->request(kLearningRate, std::nullopt);
    update->launch(nullptr, 0);
    update->fetch();
  };
  const double root = std::sqrt(static_cast<double>(parameters.size()));
  start(1);
  start(2);
  CHECK(update->wait().gradient_norm == Approx(root));
  start(std::nanf(""));
  const auto before = parameters.values().clone();
  CHECK(update->wait().gradient_norm == Approx(2 * root));
  start(3);
  CHECK(!update->wait().taken);
  CHECK(!update->wait().taken);
  CHECK(at::equal(parameters.values(), before));
  CHECK(step_of(*optimizer) == 2);
  start(4);
  const auto outcome = update->wait();
  CHECK(outcome.taken);
  CHECK(outcome.gradient_norm == Approx(4 * root));
  CHECK(!at::equal(parameters.values(), before));
}

}  // namespace farstep
