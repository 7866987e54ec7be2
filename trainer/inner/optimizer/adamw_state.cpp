// The moments lie one group after the other, without the gaps of parameters that another optimizer
// has.
#include "trainer/inner/optimizer/adamw_state.h"

#include <cmath>

namespace farstep {

at::Tensor zeros_for(std::span<const ParameterSpec> groups, at::Device device) {
  int64_t size = 0;
  for (const auto& group : groups) size += group.size();
  return at::zeros({size}, at::device(device).dtype(at::kFloat));
}

AdamWState::AdamWState(std::span<const ParameterSpec> groups, at::Device device)
    : first_moment(zeros_for(groups, device)),
      second_moment(zeros_for(groups, device)),
      host_first_(first_moment),
      host_second_(second_moment) {}

NamedBuffers AdamWState::pull() {
  return {f32_buffer("exp_avg", host_first_.pull()),
          f32_buffer("exp_avg_sq", host_second_.pull()),
          {"step", DType::kI64, {}, std::as_writable_bytes(std::span(&step, 1))}};
}

void AdamWState::push() {
  host_first_.push();
  host_second_.push();
}

AdamWStep adamw_step(const AdamWConfig& config, int64_t number, double learning_rate,
                     double gradient_factor) {
  // The moments begin at 0: after t steps they hold the share 1 - beta^t of a mean.
  const auto correction = [number](double beta) {
    return static_cast<float>(1 - std::pow(beta, static_cast<double>(number)));
  };
  return {.learning_rate = static_cast<float>(learning_rate),
          .beta1 = static_cast<float>(config.beta1),
          .beta2 = static_cast<float>(config.beta2),
          .epsilon = static_cast<float>(config.epsilon),
          .weight_decay = static_cast<float>(config.weight_decay),
          .gradient_factor = static_cast<float>(gradient_factor),
          .correction1 = correction(config.beta1),
          .correction2 = correction(config.beta2)};
}

std::vector<DecayStretch> decay_stretches(std::span<const ParameterSpec> groups) {
  std::vector<DecayStretch> stretches;
  for (const auto& group : groups) {
    const bool goes_on = !stretches.empty() && stretches.back().end == group.offset &&
                         stretches.back().decays == group.decays;
    if (!goes_on) stretches.push_back({group.offset, group.offset, group.decays});
    stretches.back().end = group.end();
  }
  return stretches;
}

}  // namespace farstep
