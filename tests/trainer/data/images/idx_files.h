// IDX files for tests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace farstep {

// A file of bytes in that shape.
inline std::string idx_text(std::initializer_list<int64_t> shape, const std::string& values) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const int64_t side : shape) {
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(side >> shift & 0xff);
  }
  return text + values;
}

}  // namespace farstep
