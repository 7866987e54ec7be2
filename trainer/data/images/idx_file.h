// IDX files, in which MNIST and its relatives come: bytes in rows, often compressed by gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "trainer/data/images/labelled_images.h"

namespace farstep {

struct IdxFile {
  std::vector<int64_t> shape;  // {60000, 28, 28} for images, {60000} for labels
  std::vector<uint8_t> values;
};

// Throws DataError with the path if the file cannot be read, is cut short, goes on after its
// values, holds anything but bytes, or is compressed and takes memory out of proportion.
IdxFile read_idx_file(const std::filesystem::path& path);

// Reads the grey images (N, height, width) of one file and the labels (N) of another. Throws
// DataError naming the file that has another shape, or none of them.
LabelledImages read_idx_images(const std::filesystem::path& images,
                               const std::filesystem::path& labels);

}  // namespace farstep
