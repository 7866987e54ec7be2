#include "trainer/inner/gpu_update.h"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/kernels/adamw_step.h"
#include "tests/trainer/model/random_model.h"
#include "tests/trainer/model/small_model.h"
#include "tests/trainer/model/tested_gpu.h"

namespace farstep {

namespace {

constexpr AdamWStep kStep = [] {
  auto step = kThirdStep;
  step.epsilon = 1e-6F;
  return step;
}();
constexpr double kNoClipping = std::numeric_limits<double>::infinity();

std::vector<DecayStretch> stretches_of(const Parameters& parameters) {
  std::vector<DecayStretch> stretches;
  for (const auto& spec : parameters.layout()) {
    stretches.push_back({spec.offset, spec.end(), spec.decays});
  }
  return stretches;
}

struct Moments {
  at::Tensor first, second;
};

UpdateOutcome run(GpuUpdate& update, const AdamWStep& step, double clip_norm,
                  const Moments& moments) {
  update.ask(step, clip_norm);
  update.give(moments.first, moments.second, /*losses=*/nullptr, 0);
  update.fetch();
  return update.wait();
}

// The same update by the kernel of a CPU; returns the norm.
double update_on_cpu(const AdamWStep& shared, double clip_norm, Parameters& parameters,
                     const Moments& moments) {
  auto step = shared;
  const auto* const gradients = parameters.gradients().const_data_ptr<float>();
  const double norm = std::sqrt(sum_of_squares(gradients, parameters.size()));
  step.gradient_factor = static_cast<float>(std::min(1.0, clip_norm / (norm + 1e-6)));
  for (const auto& [begin, end, decays] : stretches_of(parameters)) {
    step.weight_decay = decays ? shared.weight_decay : 0;
    adamw(step, gradients + begin, end - begin,
          parameters.values().mutable_data_ptr<float>() + begin,
          moments.first.mutable_data_ptr<float>() + begin,
          moments.second.mutable_data_ptr<float>() + begin, nullptr);
  }
  return norm;
}

}  // namespace

TEST_CASE("an update on a GPU is a CPU's over many steps and keeps the bf16 copy", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  for (const double clip_norm : {0.7, kNoClipping}) {
    Parameters parameters(kSmallConfig, *gpu), wanted(kSmallConfig, at::kCPU);
    const auto seed = fresh_seed();
    randomise(parameters, seed);
    randomise(wanted, seed);
    const Moments moments{at::zeros_like(parameters.values()), at::zeros_like(parameters.values())};
    const Moments wanted_moments{at::zeros_like(wanted.values()), at::zeros_like(wanted.values())};
    parameters.bf16_values();
    const auto update = make_gpu_update(parameters, stretches_of(parameters));
    for (int i = 0; i < 10; ++i) {
      auto gradients = wanted.gradients();
      gradients.normal_();
      auto own = parameters.gradients();
      own.copy_(gradients);
      const auto version = parameters.values()._version();
      const auto outcome = run(*update, kStep, clip_norm, moments);
      const double norm = update_on_cpu(kStep, clip_norm, wanted, wanted_moments);
      CHECK(outcome.taken);
      CHECK(outcome.gradient_norm == Approx(norm).epsilon(1e-9));
      CHECK(parameters.values()._version() > version);
      CHECK(at::allclose(parameters.values().cpu(), wanted.values(), 1e-5, 1e-6));
      CHECK(at::allclose(moments.second.cpu(), wanted_moments.second, 1e-5, 1e-7));
      CHECK(at::equal(parameters.bf16_values(), parameters.values().to(at::kBFloat16)));
    }
  }
}

TEST_CASE("an update on a GPU from gradients that are not finite changes nothing", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  Parameters parameters(kSmallConfig, *gpu);
  randomise(parameters, fresh_seed());
  const auto before = parameters.values().clone();
  const Moments moments{at::ones_like(before), at::ones_like(before)};
  const auto update = make_gpu_update(parameters, stretches_of(parameters));
  auto gradients = parameters.gradients();
  gradients[3] = std::nanf("");
  const auto outcome = run(*update, kStep, 1, moments);
  CHECK(!outcome.taken);
  CHECK(!std::isfinite(outcome.gradient_norm));
  CHECK(at::equal(parameters.values(), before));
  CHECK(at::equal(moments.first, at::ones_like(before)));
  CHECK(at::equal(moments.second, at::ones_like(before)));
}

TEST_CASE("an update on a GPU is known late and none is taken after one that was not", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  Parameters parameters(kSmallConfig, *gpu);
  randomise(parameters, fresh_seed());
  const Moments moments{at::zeros_like(parameters.values()), at::zeros_like(parameters.values())};
  const auto update = make_gpu_update(parameters, stretches_of(parameters));
  auto gradients = parameters.gradients();
  const auto start = [&](float gradient) {
    gradients.fill_(gradient);
    update->ask(kStep, kNoClipping);
    update->give(moments.first, moments.second, nullptr, 0);
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
  start(4);
  const auto outcome = update->wait();
  CHECK(outcome.taken);
  CHECK(outcome.gradient_norm == Approx(4 * root));
  CHECK(!at::equal(parameters.values(), before));
}

}  // namespace farstep
