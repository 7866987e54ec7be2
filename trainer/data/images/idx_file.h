// IDX files, in which MNIST and its relatives come: bytes in rows, often compressed by gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace farstep {

struct IdxFile {
  std::vector<int64_t> shape;  // {60000, 28, 28} for images, {60000} for labels
  std::vector<uint8_t> values;
};

// Throws DataError with the path if the file cannot be read, is cut short, goes on after its
// values, or holds anything but bytes.
IdxFile read_idx_file(const std::filesystem::path& path);

}  // namespace farstep
