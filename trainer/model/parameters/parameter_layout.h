// Where each parameter of a model stands in the one flat vector that holds them all.
//
// A model lists its parameters once, with LayoutBuilder; memory, optimizers, checkpoints and the
// sync take from the list what they need. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/memory/named_buffers.h"

namespace farstep {

struct ParameterSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;
  int64_t offset = 0;   // of its first element in the flat vector
  bool decays = false;  // has weight decay
  // A matrix from hidden values to hidden values: neither embedding nor head. Some optimizers
  // treat it as a whole.
  bool is_hidden_matrix = false;
  double init_std = 0;    // fresh values are normal of this deviation,
  double init_value = 0;  // or all this one where the deviation is 0

  int64_t size() const { return num_elements(shape); }
  int64_t end() const { return offset + size(); }
};

// Puts parameters one after the other, without holes.
class LayoutBuilder {
 public:
  // A hidden matrix, or a convolution: it decays, and begins with normal values.
  void weight(std::string name, std::vector<int64_t> shape, double init_std);
  // An embedding or a head: the same, but each row stands for a token or a class.
  void table(std::string name, std::vector<int64_t> shape, double init_std);
  // A norm or a bias: it does not decay, and begins with one value.
  void constant(std::string name, std::vector<int64_t> shape, double init_value);
  std::vector<ParameterSpec> finish() { return std::move(layout_); }

 private:
  void add(ParameterSpec spec);
  std::vector<ParameterSpec> layout_;
};

// Elements of the flat vector.
int64_t num_parameters(const std::vector<ParameterSpec>& layout);

// The parameters as buffers in `flat` (num_parameters elements of host memory), which must outlive
// them.
NamedBuffers named_parameters(const std::vector<ParameterSpec>& layout, std::span<float> flat);

}  // namespace farstep
