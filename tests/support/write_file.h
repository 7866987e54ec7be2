// A quick way to put bytes into a file.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace farstep {

// Writes a file without waiting for the disk.
inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace farstep
