// Opens a trained model for commands other than `train`: from a checkpoint, a Hugging Face folder,
// or a site's folder. Of a site's folder it takes the newest complete checkpoint.
#pragma once

#include <filesystem>
#include <memory>

#include "trainer/model/llama/llama.h"

namespace farstep {

// Returns the folder with config.json and model.safetensors for `folder`. Throws DataError if there
// is none.
std::filesystem::path find_model(const std::filesystem::path& folder);

// Opens the model of such a folder in fp32, on a CPU slice of `threads`. Throws DataError.
std::unique_ptr<Llama> open_model(const std::filesystem::path& folder, int64_t threads);

}  // namespace farstep
