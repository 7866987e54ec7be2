// AdamW over stretches of the flat vector that decay alike, so that a stretch is one loop and not
// one for each parameter.
#include "trainer/inner/optimizer/adamw.h"

#include <ATen/Parallel.h>

namespace farstep {

namespace {

// Values of one thread's piece. An update of fewer takes less time than waking another thread.
constexpr int64_t kGrainValues = 1 << 14;

// The lists that LibTorch's fused AdamW takes.
struct TensorLists {
  std::vector<at::Tensor> values, gradients, first_moments, second_moments;
};

}  // namespace

AdamW::AdamW(const AdamWConfig& config, Parameters& parameters,
             std::span<const ParameterSpec> groups)
    : HostOptimizer(parameters),
      config_(config),
      stretches_(decay_stretches(groups)),
      state_(groups, parameters.values().device()) {}

void AdamW::change_values(double learning_rate, double gradient_factor) {
  ++state_.step;
  if (parameters().values().is_cpu()) {
    update_on_cpu(learning_rate, gradient_factor);
  } else {
    update_by_libtorch(learning_rate, gradient_factor);
  }
}

void AdamW::update_on_cpu(double learning_rate, double gradient_factor) {
  auto step = adamw_step(config_, state_.step, learning_rate, gradient_factor);
  const float decay = step.weight_decay;
  const auto* const gradients = parameters().gradients().const_data_ptr<float>();
  auto* const values = parameters().values().mutable_data_ptr<float>();
  BF16* const copy = parameters().bf16_copy();
  auto* first = state_.first_moment.mutable_data_ptr<float>();
  auto* second = state_.second_moment.mutable_data_ptr<float>();
  for (const auto& stretch : stretches_) {
    step.weight_decay = stretch.decays ? decay : 0.0F;
    at::parallel_for(0, stretch.end - stretch.begin, kGrainValues, [&](int64_t begin, int64_t end) {
      const int64_t at = stretch.begin + begin;
      adamw(step, gradients + at, end - begin, values + at, first + begin, second + begin,
            copy == nullptr ? nullptr : copy + at);
    });
    // The moments of the stretches have no holes between them, unlike the values.
    first += stretch.end - stretch.begin;
    second += stretch.end - stretch.begin;
  }
  parameters().note_update();
}

// LibTorch's fused AdamW, for GPUs in builds without our own kernels. It takes one decay for a
// list.
void AdamW::update_by_libtorch(double learning_rate, double gradient_factor) {
  if (gradient_factor != 1) parameters().gradients().mul_(gradient_factor);
  TensorLists decaying, other;
  int64_t in_state = 0;
  for (const auto& stretch : stretches_) {
    const int64_t size = stretch.end - stretch.begin;
    auto& lists = stretch.decays ? decaying : other;
    lists.values.push_back(parameters().values().narrow(0, stretch.begin, size));
    lists.gradients.push_back(parameters().gradients().narrow(0, stretch.begin, size));
    lists.first_moments.push_back(state_.first_moment.narrow(0, in_state, size));
    lists.second_moments.push_back(state_.second_moment.narrow(0, in_state, size));
    in_state += size;
  }
  const auto update = [&](const TensorLists& lists, double decay) {
    if (lists.values.empty()) return;  // which LibTorch refuses
    const auto step = at::full({}, static_cast<double>(state_.step), state_.first_moment.options());
    const std::vector<at::Tensor> steps(lists.values.size(), step);
    at::_fused_adamw_(lists.values, lists.gradients, lists.first_moments, lists.second_moments,
                      /*max_exp_avg_sqs=*/{}, steps, learning_rate, config_.beta1, config_.beta2,
                      decay, config_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  };
  update(decaying, config_.weight_decay);
  update(other, /*decay=*/0);
}

}  // namespace farstep
