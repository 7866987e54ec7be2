// The model's parameters and their gradients: two flat fp32 tensors on the device.
//
// Every parameter is a leaf of autograd whose values and gradient are views into the flat ones, so
// that backward adds into the flat gradient, and the optimizer and the sync see one vector each.
// Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/kernels/numbers/bf16.h"
#include "trainer/model/parameters/host_mirror.h"
#include "trainer/model/parameters/parameter_layout.h"

namespace farstep {

class Parameters {
 public:
  // Memory for the parameters of a layout; all values and gradients are 0.
  Parameters(std::vector<ParameterSpec> layout, at::Device device);

  // Sets all values as the layout says they begin. The bits depend on seed and layout alone: not on
  // device, processor or number of threads.
  void initialise(uint64_t seed);

  const std::vector<ParameterSpec>& layout() const { return layout_; }
  int64_t size() const { return values_.numel(); }

  // All values and all gradients, (size()) each. To be changed in place only.
  const at::Tensor& values() const { return values_; }
  const at::Tensor& gradients() const { return gradients_; }
  // The values rounded to bf16, (size()), kept from the first call on. They are made anew if
  // values() has changed since: by tensors' operations, host_values().push() or note_update().
  const at::Tensor& bf16_values();
  // The memory of bf16_values(), null before its first call. Code that updates values() through
  // their memory must write the rounded values here as well.
  BF16* bf16_copy();
  // To be called after an update of all values() through their memory, and of bf16_copy().
  void note_update();

  // The values in host memory, for checkpoints and the sync.
  HostMirror& host_values() { return host_values_; }

  // The leaf of one parameter. Throws InternalError on an unknown name.
  const at::Tensor& leaf(const std::string& name) const;

 private:
  const std::vector<ParameterSpec> layout_;
  at::Tensor values_, gradients_;
  HostMirror host_values_;
  at::Tensor bf16_values_;
  int64_t bf16_version_ = 0;                  // of the values that they are
  std::map<std::string, at::Tensor> leaves_;  // by name
};

}  // namespace farstep
