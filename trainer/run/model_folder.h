// A trained model as other commands than `train` open it: a checkpoint, a Hugging Face folder, or
// the folder of a site, whose newest whole checkpoint is taken.
#pragma once

#include <filesystem>
#include <memory>

#include "trainer/model/llama.h"

namespace farstep {

// The folder with config.json and model.safetensors that `folder` means. Throws DataError if there
// is none.
std::filesystem::path find_model(const std::filesystem::path& folder);

// Opens the model of such a folder on a CPU slice of `threads`, in fp32. Throws DataError.
std::unique_ptr<Llama> open_model(const std::filesystem::path& folder, int64_t threads);

}  // namespace farstep
