// What all fuzz targets share: which errors an input may cause, and inputs as files.
#pragma once

#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

inline std::string_view text_of(const uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Calls `call`, which may refuse its input as a wrong config or wrong data. Any other exception
// ends the process, and so is a finding.
template <typename Call>
void accept_or_refuse(Call&& call) {
  try {
    call();
  } catch (const ConfigError&) {
  } catch (const DataError&) {
  }
}

// The process's folder for inputs that are read as files. Also turns the log off, which would take
// most of the time.
inline const TemporaryFolder& scratch_folder() {
  static const TemporaryFolder folder;
  spdlog::set_level(spdlog::level::off);
  return folder;
}

// Returns a folder of this name without what the input before has left in it.
inline std::filesystem::path emptied(std::string_view name) {
  auto folder = scratch_folder() / std::string(name);
  remove_folder(folder);
  make_folder(folder);
  return folder;
}

// Returns a file that has this content until the next call.
inline std::filesystem::path file_with(std::string_view content) {
  const auto path = scratch_folder() / "input";
  write_file(path, content);
  return path;
}

}  // namespace farstep
