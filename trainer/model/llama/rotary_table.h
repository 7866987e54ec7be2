// Rotary position embeddings (Su et al. 2021) as in `transformers`: element i of a head is rotated
// with element i + D/2 by the angle position * frequency i.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include "trainer/model/shape/llama_config.h"

namespace farstep {

// Returns the model's frequencies (D / 2), fp32: theta^(-2i/D), scaled as `rope_scaling` says.
at::Tensor rotary_frequencies(const LlamaConfig& config, at::Device device);

// Cosines and sines of positions, fp32, computed when they are first needed. Not thread-safe.
class RotaryTable {
 public:
  // `frequencies` (D / 2) are fp32; the tables are on their device.
  explicit RotaryTable(at::Tensor frequencies);

  // Returns cosines and sines of positions 0 to `positions` - 1, (positions, D / 2) each,
  // contiguous.
  std::pair<at::Tensor, at::Tensor> tables(int64_t positions);

  // Returns the number of positions computed so far.
  int64_t positions() const { return cosines_.size(0); }

  // Returns x (B, heads, T, D) rotated, from position `first`, in the type of x; computes in fp32.
  at::Tensor rotate(const at::Tensor& x, int64_t first = 0);

 private:
  void extend(int64_t positions);

  const at::Tensor frequencies_;  // (D / 2)
  at::Tensor cosines_, sines_;    // (positions, D / 2)
};

}  // namespace farstep
