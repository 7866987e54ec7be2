// The images of a folder: IDX files as MNIST and Fashion-MNIST have them, or CIFAR-10's binary
// version.
//
// Thread-safe once loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trainer/data/images/labelled_images.h"

namespace farstep {

struct ImageData {
  // Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, and those of t10k, each with or without
  // .gz; or data_batch_1.bin to data_batch_5.bin and test_batch.bin. Throws DataError naming the
  // file or the folder if one is missing, damaged, or does not fit the others.
  explicit ImageData(const std::filesystem::path& folder);

  // Returns whether a file of `folder` has one of these names.
  static bool is_in(const std::filesystem::path& folder);

  // Returns the same 64-bit checksum at sites with equal images.
  uint64_t digest() const;
  // Returns "60000 images of 1 x 28 x 28 in 10 classes to train on, 10000 to validate on".
  std::string text() const;

  LabelledImages training, validation;
  int64_t classes = 0;  // one more than the largest label
};

}  // namespace farstep
