// The inner optimizer's interface: one update of a model's parameters from their gradients.
//
// An optimizer is made for groups of parameters. Each has a name, a shape, a range in the flat
// vectors and a weight decay (ParameterSpec). Master weights and state are fp32. The state belongs
// to the site; no sync resets it.
//
// An update depends on values, state, gradients and settings alone. So devices that start with
// equal bits, and have the same sum of gradients, keep equal values and equal states. The state of
// one is the state of all. Not thread-safe.
#pragma once

#include <optional>

#include "trainer/base/memory/named_buffers.h"
#include "trainer/inner/optimizer/gpu_update.h"

namespace farstep {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates the values from the gradients, clipped to `clip_norm`. Returns the norm of all
  // gradients before clipping. If it is not finite, values and state are unchanged.
  virtual double clip_and_update(double learning_rate, const std::optional<double>& clip_norm) = 0;

  // The same without a wait; null unless the optimizer runs in GPU kernels. The state may be read
  // after wait() was called for every step.
  virtual GpuUpdate* gpu_update() { return nullptr; }

  // Returns the present state in host memory that stays in place. To restore a state, write it into
  // these buffers and call push_state().
  virtual NamedBuffers pull_state() = 0;
  virtual void push_state() = 0;

  // Returns buffers for a copy of the present state, and with `with_values` of all values
  // ("theta_local"). The copy is complete when copy_snapshot() returns. Any one other thread may
  // call that. Updates wait for the copy; all other code that changes the values must wait for it
  // too. The buffers are valid until the next start_snapshot(). No launched step may lack its
  // wait().
  virtual NamedBuffers start_snapshot(bool with_values) = 0;
  virtual void copy_snapshot() = 0;
  // Returns the seconds that updates have waited for copies; 0 if a GPU waits instead of the host.
  virtual double held_seconds() const = 0;
};

}  // namespace farstep
