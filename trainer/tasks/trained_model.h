// Opens the folder of a trained model, for commands other than `train`.
#pragma once

#include <filesystem>
#include <string_view>

#include "trainer/checkpoint/hf_folder.h"

namespace farstep {

// Opens a checkpoint, a Hugging Face folder, or of a site's folder the newest complete checkpoint.
// Throws DataError if there is none.
HfFolder trained_model(const std::filesystem::path& folder);

// Does the same for a command that is for language models only. Throws DataError with the command's
// name if the model is of another family.
HfFolder trained_language_model(const std::filesystem::path& folder, std::string_view command);

}  // namespace farstep
