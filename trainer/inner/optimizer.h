// The inner optimizer: AdamW, or plain gradient descent for tests of identities.
//
// Master weights and moments are fp32. The moments belong to the site and are never reset by a
// sync. Not thread-safe.
#pragma once

#include <memory>
#include <optional>

#include "trainer/base/named_buffers.h"
#include "trainer/config/run_config.h"
#include "trainer/inner/deferred_update.h"
#include "trainer/model/parameters.h"

namespace farstep {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update of all values from `gradient_factor` times their gradients, which may be scaled by
  // it.
  virtual void update(double learning_rate, double gradient_factor = 1) = 0;
  // The same with the gradients clipped to `clip_norm`; returns their norm. Where that is not
  // finite nothing changes.
  virtual double clip_and_update(double learning_rate, const std::optional<double>& clip_norm) = 0;

  // The same of a GPU that is not waited for, null where there is none such; pull_state() tells
  // what is true once all steps have been waited for.
  virtual DeferredUpdate* deferred() { return nullptr; }

  // What must be kept to go on later, in host memory that stays where it is, as it is now; restored
  // by writing into these buffers and then calling push_state().
  virtual NamedBuffers pull_state() = 0;
  virtual void push_state() = 0;
};

// The configured optimizer over `parameters`, which must outlive it.
//
// AdamW as torch has it: bias correction, epsilon outside the root, decoupled weight decay on what
// the layout says decays; on a CPU one pass over memory does it all, and writes the bf16 copy of
// the values if the parameters keep one. State: "exp_avg" and "exp_avg_sq", flat as the parameters,
// and "step", the number of updates. Plain descent subtracts learning rate times gradient and has
// no state.
std::unique_ptr<Optimizer> make_optimizer(const InnerConfig& config, Parameters& parameters);

}  // namespace farstep
