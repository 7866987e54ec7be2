// An optimizer whose update the host starts after it knows the norm of the gradients.
//
// This class has clipping and snapshots; a derived class adds its update and its state. Contract
// and threads are those of Optimizer.
#pragma once

#include "trainer/base/memory/snapshot.h"
#include "trainer/inner/optimizer/optimizer.h"
#include "trainer/model/parameters/parameters.h"

namespace farstep {

class HostOptimizer : public Optimizer {
 public:
  // `parameters` must outlive this.
  explicit HostOptimizer(Parameters& parameters) : parameters_(parameters) {}

  // Makes one update from `gradient_factor` times the gradients. It may scale gradients on a GPU in
  // place.
  void update(double learning_rate, double gradient_factor = 1);

  double clip_and_update(double learning_rate, const std::optional<double>& clip_norm) final;
  NamedBuffers start_snapshot(bool with_values) final;
  void copy_snapshot() final { snapshot_.copy(); }
  double held_seconds() const final { return held_seconds_; }

 protected:
  Parameters& parameters() const { return parameters_; }
  virtual void change_values(double learning_rate, double gradient_factor) = 0;

 private:
  Parameters& parameters_;
  Snapshot snapshot_;
  double held_seconds_ = 0;
};

}  // namespace farstep
