// What the tests of several devices of a site train with.
#pragma once

#include <ATen/Parallel.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/trainer/inner/small_training.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/language/make_model.h"

namespace farstep {

inline InnerConfig reducing(ReductionKind kind) {
  auto config = inner_config();
  config.reduction = kind;
  return config;
}

// The small model at a site of cpu slices with a thread each, whose replicas can be looked at.
class SmallSite {
 public:
  SmallSite(std::size_t devices, const InnerConfig& config)
      : first_(
            make_model(kSmallConfig, at::kCPU, config.compute, config.step, /*recompute=*/false)) {
    first_->parameters().initialise(5);
    std::vector<std::unique_ptr<Replica>> replicas;
    while (replicas.size() + 1 < devices) {
      replicas.push_back(std::make_unique<Replica>([&config] {
        at::set_num_threads(1);
        return make_model(kSmallConfig, at::kCPU, config.compute, config.step, /*recompute=*/false);
      }));
      others_.push_back(&replicas.back()->model());
    }
    step_ = std::make_unique<InnerStep>(*first_, config, std::move(replicas));
  }

  InnerStep& step() { return *step_; }
  TrainableModel& model(std::size_t device) {
    return device == 0 ? *first_ : *others_.at(device - 1);
  }
  const at::Tensor& values(std::size_t device = 0) { return model(device).parameters().values(); }

 private:
  std::unique_ptr<TrainableModel> first_;
  std::vector<TrainableModel*> others_;
  std::unique_ptr<InnerStep> step_;
};

}  // namespace farstep
