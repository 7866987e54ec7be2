// Where each parameter of a LLaMA stands in the one flat vector that holds them all.
//
// The order and the names are those of Hugging Face's LlamaForCausalLM.named_parameters(), so that
// the flat vector means the same to every program. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/named_buffers.h"
#include "trainer/model/llama_config.h"

namespace farstep {

struct ParameterSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;
  int64_t offset = 0;   // of its first element in the flat vector
  bool decays = false;  // has weight decay: every matrix, embedding and head included; no norm

  int64_t size() const { return num_elements(shape); }
  int64_t end() const { return offset + size(); }
};

// All parameters in order, without holes. A tied output head is the embedding and does not appear.
std::vector<ParameterSpec> parameter_layout(const LlamaConfig& config);

// Elements of the flat vector.
int64_t num_parameters(const std::vector<ParameterSpec>& layout);

// Name of the parameter that holds element `index` of the flat vector. Throws InternalError if it
// is out of range.
const std::string& parameter_at(const std::vector<ParameterSpec>& layout, int64_t index);

// The parameters as buffers in `flat` (num_parameters elements of host memory), which must outlive
// them.
NamedBuffers named_parameters(const std::vector<ParameterSpec>& layout, std::span<float> flat);

}  // namespace farstep
