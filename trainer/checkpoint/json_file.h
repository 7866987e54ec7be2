// Strict reading of the JSON files of a checkpoint or a Hugging Face folder. Turns the ConfigError
// of a config reader into a DataError.
#pragma once

#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/config/config_file.h"
#include "trainer/config/json_fields.h"

namespace farstep {

// Returns the file's JSON. Throws DataError if it cannot be read or is not JSON.
inline Json load_json_data(const std::filesystem::path& file) {
  try {
    return load_json(file);
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

// Returns the struct that the file describes. Throws DataError where load_json or read_json would
// throw.
template <HasFields T>
T load_fields(const std::filesystem::path& file) {
  try {
    return read_json<T>(load_json(file), file.string());
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

}  // namespace farstep
