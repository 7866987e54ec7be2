#include "trainer/inner/make_optimizer.h"

#include <algorithm>
#include <array>

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

struct Maker {
  InnerOptimizer kind;
  std::unique_ptr<Optimizer> (*make)(const InnerConfig&, Parameters&);
};
constexpr std::array kMakers{Maker{InnerOptimizer::kAdamW, make_adamw},
                             Maker{InnerOptimizer::kMuon, make_muon},
                             Maker{InnerOptimizer::kSgd, make_sgd}};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const InnerConfig& config, Parameters& parameters) {
  const auto found = std::ranges::find(kMakers, config.optimizer, &Maker::kind);
  FARSTEP_CHECK(found != kMakers.end(), "no optimizer is called {}", name_of(config.optimizer));
  return found->make(config, parameters);
}

}  // namespace farstep
