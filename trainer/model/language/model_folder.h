// Opens a trained language model for commands other than `train`.
#pragma once

#include <memory>

#include "trainer/checkpoint/hf_folder.h"
#include "trainer/model/llama/llama.h"

namespace farstep {

// Opens the model of a checkpoint in fp32, on a CPU slice of `threads`. Throws DataError.
std::unique_ptr<Llama> open_model(const HfFolder& folder, int64_t threads);

}  // namespace farstep
