// Writes bytes to a file quickly.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace farstep {

// Writes a file without a flush to the disk.
inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace farstep
