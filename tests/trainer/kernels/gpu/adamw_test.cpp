#include "trainer/kernels/gpu/adamw.h"

#include <limits>
#include <numeric>

#include "tests/trainer/kernels/adamw_step.h"
#include "tests/trainer/kernels/gpu/on_gpu.h"

namespace farstep {

namespace {

constexpr double kNoClipping = std::numeric_limits<double>::infinity();

struct State {
  std::vector<float> values, first, second;
  std::vector<BF16> copy;
};

State random_state(int64_t size) {
  State state{random_values(size), random_values(size, 0.1), random_values(size, 0.1), {}};
  for (auto& value : state.second) value *= value;
  state.copy = as<BF16>(state.values);
  return state;
}

// The outcome of gradients and losses after a step with the outcome `before`, and the state after
// the step.
StepOutcome step_on_gpu(const StepRequest& request, const std::vector<float>& gradients,
                        const std::vector<DecayStretch>& stretches, State& state,
                        const std::vector<float>& losses = {}, const StepOutcome& before = {}) {
  const auto gpu_gradients = on_gpu(gradients);
  const auto gpu_request = on_gpu(std::vector<StepRequest>{request});
  const auto gpu_chunks = on_gpu(adamw_chunks(stretches));
  DeviceArray<double> parts(static_cast<std::size_t>(norm_parts(std::ssize(gradients))));
  const auto gpu_losses = on_gpu(losses);
  auto outcome = on_gpu(std::vector<StepOutcome>{before});
  auto values = on_gpu(state.values), first = on_gpu(state.first), second = on_gpu(state.second);
  auto copy = on_gpu(state.copy);
  require(launch_step_outcome(
      {gpu_gradients.data(), std::ssize(gradients), gpu_losses.data(), std::ssize(losses)},
      gpu_request.data(), parts.data(), outcome.data(), nullptr));
  require(launch_adamw(
      gpu_request.data(), outcome.data(), gpu_chunks.data(), std::ssize(adamw_chunks(stretches)),
      {gpu_gradients.data(), values.data(), first.data(), second.data(), copy.data()}, nullptr));
  state = {values.download(), first.download(), second.download(), copy.download()};
  return outcome.download()[0];
}

}  // namespace

TEST_CASE("chunks cover every stretch once and do not cross its ends") {
  const std::vector<DecayStretch> stretches{
      {0, 1, true}, {1, 9000, false}, {9000, 9000, true}, {9000, 3 * kChunkValues, true}};
  int64_t end = 0;
  for (const auto& chunk : adamw_chunks(stretches)) {
    CHECK(chunk.begin == end);
    CHECK(chunk.size > 0);
    end = chunk.begin + chunk.size;
    CHECK((chunk.begin % kChunkValues == 0 || chunk.begin == 1 || chunk.begin == 9000));
    CHECK(chunk.begin / kChunkValues == (end - 1) / kChunkValues);
    CHECK((chunk.decays == 1) == (chunk.begin < 1 || chunk.begin >= 9000));
  }
  CHECK(end == 3 * kChunkValues);
  CHECK(adamw_chunks({}).empty());
}

TEST_CASE("a step is taken if norm and loss are finite and clips by the norm") {
  const auto outcome = [](double squares, double clip_norm, double loss = 2.5) {
    return step_outcome(squares, clip_norm, loss, /*refused=*/false);
  };
  const auto clipped = outcome(16, 1);
  CHECK(clipped.gradient_norm == 4);
  CHECK(clipped.loss == 2.5);
  CHECK(clipped.gradient_factor == static_cast<float>(1 / (4 + 1e-6)));
  CHECK(clipped.taken == 1);
  CHECK(clipped.refused == 0);
  CHECK(outcome(16, 5).gradient_factor == 1);
  CHECK(outcome(16, kNoClipping).gradient_factor == 1);
  CHECK(outcome(0, 1).gradient_factor == 1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& refused :
       {outcome(kInfinity, 1), outcome(std::nan(""), 1), outcome(16, 1, kInfinity),
        outcome(16, 1, -kInfinity), outcome(16, 1, std::nan("")), step_outcome(16, 1, 0, true)}) {
    CHECK(refused.taken == 0);
    CHECK(refused.refused == 1);
  }
}

TEST_CASE("a GPU updates all stretches as a CPU does", "[gpu]") {
  if (lacks_gpu()) return;
  for (const int64_t size : {1, 3, 255, 4096, 9001}) {
    for (const double clip_norm : {0.5, kNoClipping}) {
      const int64_t cut = size / 3;
      const std::vector<DecayStretch> stretches{{0, cut, true}, {cut, size, false}};
      const auto gradients = random_values(size);
      auto state = random_state(size);
      auto wanted = state;
      const auto outcome =
          step_on_gpu({.update = kThirdStep, .clip_norm = clip_norm}, gradients, stretches, state);

      const auto expected =
          step_outcome(sum_of_squares(gradients.data(), size), clip_norm, /*loss=*/0, false);
      CHECK(outcome.gradient_norm == Approx(expected.gradient_norm).epsilon(1e-12));
      CHECK(outcome.gradient_factor == Approx(expected.gradient_factor));
      CHECK(outcome.taken == 1);
      for (const auto& stretch : stretches) {
        auto step = kThirdStep;
        step.gradient_factor = expected.gradient_factor;
        if (!stretch.decays) step.weight_decay = 0;
        const auto at = stretch.begin;
        adamw(step, gradients.data() + at, stretch.end - at, wanted.values.data() + at,
              wanted.first.data() + at, wanted.second.data() + at, wanted.copy.data() + at);
      }
      CHECK(relative_error(state.values, exact(wanted.values), 0.1) < 1e-6);
      CHECK(relative_error(state.first, exact(wanted.first), 0.1) < 1e-6);
      CHECK(relative_error(state.second, exact(wanted.second), 0.01) < 1e-6);
      CHECK(equal_bits(state.copy, as<BF16>(state.values)));
    }
  }
}

TEST_CASE("a step that is not finite changes nothing on a GPU", "[gpu]") {
  if (lacks_gpu()) return;
  const int64_t size = 5000;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    auto gradients = random_values(size);
    gradients[4321] = bad;
    auto state = random_state(size);
    const auto before = state;
    const auto outcome =
        step_on_gpu({.update = kThirdStep, .clip_norm = 1}, gradients, {{0, size, true}}, state);
    CHECK(outcome.taken == 0);
    CHECK(state.values == before.values);
    CHECK(state.first == before.first);
    CHECK(state.second == before.second);
    CHECK(equal_bits(state.copy, before.copy));
  }
}

TEST_CASE("after a step that was not taken none is on a GPU until its outcome is cleared",
          "[gpu]") {
  if (lacks_gpu()) return;
  const int64_t size = 700;
  const std::vector<DecayStretch> stretches{{0, size, true}};
  const StepRequest request{.update = kThirdStep, .clip_norm = 1};
  const auto gradients = random_values(size);
  const auto losses = random_values(300);
  auto state = random_state(size);
  const auto before = state;
  auto bad = losses;
  bad[299] = std::nanf("");
  const auto first = step_on_gpu(request, gradients, stretches, state, bad);
  CHECK(first.taken == 0);
  const auto second = step_on_gpu(request, gradients, stretches, state, losses, first);
  CHECK(second.taken == 0);
  CHECK(state.values == before.values);
  const auto third = step_on_gpu(request, gradients, stretches, state, losses);
  CHECK(third.taken == 1);
  CHECK(third.loss == Approx(std::accumulate(losses.begin(), losses.end(), 0.0)).margin(1e-9));
  CHECK(state.values != before.values);
}

}  // namespace farstep
