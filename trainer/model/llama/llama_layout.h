// The parameters of a LLaMA.
//
// Order and names are those of Hugging Face's LlamaForCausalLM.named_parameters(), so that the flat
// vector means the same to every program. Pure function; thread-safe.
#pragma once

#include <vector>

#include "trainer/model/parameters/parameter_layout.h"
#include "trainer/model/shape/llama_config.h"

namespace farstep {

// Matrices decay, embedding and head included, and begin with deviation init_std; norms do not, and
// begin as 1. A tied output head is the embedding and does not appear.
std::vector<ParameterSpec> llama_layout(const LlamaConfig& config);

}  // namespace farstep
