// theta_local of a model on any device, as a strategy reads and writes it.
#pragma once

#include <span>

#include "trainer/model/parameters/host_mirror.h"
#include "trainer/strategy/strategy.h"

namespace farstep {

class ModelTheta : public LocalTheta {
 public:
  // `mirror` must outlive this.
  explicit ModelTheta(HostMirror& mirror) : mirror_(mirror) {}

  std::span<float> pull(const outer_optimizer::Range& range) override;
  void start_pull(const outer_optimizer::Range& range) override;
  std::span<float> finish_pull() override;
  void push(const outer_optimizer::Range& range, std::span<const float> values) override;

 private:
  HostMirror& mirror_;
};

}  // namespace farstep
