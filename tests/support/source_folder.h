// Where the sources of this build lie, for tests that read documents or recorded values.
#pragma once

#include <filesystem>

namespace farstep {

// Returns the root of the repository.
std::filesystem::path source_folder();

}  // namespace farstep
