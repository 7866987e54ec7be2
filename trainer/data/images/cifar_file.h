// Files of CIFAR-10's binary version: one record an image, of its label and its 3 x 32 x 32 pixels.
#pragma once

#include <cstdint>
#include <filesystem>

#include "trainer/data/images/labelled_images.h"

namespace farstep {

// Of each file of the data set.
inline constexpr int64_t kCifarRecords = 10'000;

// Appends the images of a file, which must have so many records, to `images`. Throws DataError with
// the path if the file cannot be read, has another size, or has a label above 9.
void append_cifar_file(const std::filesystem::path& path, LabelledImages& images,
                       int64_t records = kCifarRecords);

}  // namespace farstep
