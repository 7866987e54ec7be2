#include "trainer/inner/make_optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/base/error.h"
#include "trainer/inner/gpu/gpu_adamw.h"
#include "trainer/inner/muon/muon.h"
#include "trainer/inner/optimizer/adamw.h"
#include "trainer/inner/optimizer/sgd.h"

namespace farstep {

namespace {

std::unique_ptr<Optimizer> make_adamw(const InnerConfig& config, Parameters& parameters) {
#ifdef FARSTEP_HAS_CUDA
  if (auto on_gpu = make_gpu_adamw(config.adamw, parameters, parameters.layout())) return on_gpu;
#endif
  return std::make_unique<AdamW>(config.adamw, parameters, parameters.layout());
}

std::unique_ptr<Optimizer> make_muon(const InnerConfig& config, Parameters& parameters) {
  return std::make_unique<Muon>(config.muon, config.adamw, parameters, parameters.layout());
}

std::unique_ptr<Optimizer> make_sgd(const InnerConfig& /*config*/, Parameters& parameters) {
  return std::make_unique<Sgd>(parameters, parameters.layout());
}

// The update is the corrected first moment by the root of the corrected second one. By the
// inequality of Cauchy and Schwarz their ratio is at most 1 in the first step. It rises or falls to
// (1 - beta1) / sqrt((1 - beta2) (1 - beta1^2 / beta2)), if that is finite.
StepBound adamw_bound(const InnerConfig& config, std::span<const ParameterSpec> /*layout*/) {
  const auto& [beta1, beta2, epsilon, weight_decay] = config.adamw;
  if (beta1 * beta1 >= beta2) return {};
  const double late = (1 - beta1) / std::sqrt((1 - beta2) * (1 - beta1 * beta1 / beta2));
  return {.per_rate = std::max(1.0, late), .weight_decay = weight_decay};
}

StepBound muon_bound(const InnerConfig& config, std::span<const ParameterSpec> layout) {
  const auto rest = adamw_bound(config, layout);
  if (rest.per_rate == 0) return {};
  return {.per_rate = std::max(rest.per_rate, largest_update(layout)),
          .weight_decay = std::max(rest.weight_decay, config.muon.weight_decay)};
}

StepBound sgd_bound(const InnerConfig& config, std::span<const ParameterSpec> /*layout*/) {
  return {.per_rate = config.clip_norm.value_or(0)};
}

struct Kind {
  InnerOptimizer optimizer;
  std::unique_ptr<Optimizer> (*make)(const InnerConfig&, Parameters&);
  StepBound (*bound)(const InnerConfig&, std::span<const ParameterSpec>);
};
constexpr std::array kKinds{Kind{InnerOptimizer::kAdamW, make_adamw, adamw_bound},
                            Kind{InnerOptimizer::kMuon, make_muon, muon_bound},
                            Kind{InnerOptimizer::kSgd, make_sgd, sgd_bound}};

const Kind& kind_of(InnerOptimizer optimizer) {
  const auto found = std::ranges::find(kKinds, optimizer, &Kind::optimizer);
  FARSTEP_CHECK(found != kKinds.end(), "no optimizer is called {}", name_of(optimizer));
  return *found;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const InnerConfig& config, Parameters& parameters) {
  return kind_of(config.optimizer).make(config, parameters);
}

StepBound step_bound(const InnerConfig& config, std::span<const ParameterSpec> layout) {
  return kind_of(config.optimizer).bound(config, layout);
}

}  // namespace farstep
