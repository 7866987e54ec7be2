// IDX files for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>

#include "tests/support/write_file.h"

namespace farstep {

// A file of bytes in that shape.
inline std::string idx_text(std::initializer_list<int64_t> shape, const std::string& values) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const int64_t side : shape) {
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(side >> shift & 0xff);
  }
  return text + values;
}

// Writes images of size x size, of which image i has label i modulo `classes`, into the files of
// one split ("train" or "t10k"). A bright row tells the label.
inline void write_bright_rows(const std::filesystem::path& folder, const std::string& split,
                              int64_t count, int64_t size, int64_t classes) {
  std::string pixels, labels;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = i % classes;
    for (int64_t row = 0; row < size; ++row) {
      const bool is_bright = row * classes / size == label;
      pixels += std::string(static_cast<std::size_t>(size), is_bright ? '\xff' : '\x20');
    }
    labels += static_cast<char>(label);
  }
  write_file(folder / (split + "-images-idx3-ubyte"), idx_text({count, size, size}, pixels));
  write_file(folder / (split + "-labels-idx1-ubyte"), idx_text({count}, labels));
}

}  // namespace farstep
