// A text that is put together by rules of a stranger's file, within a limit.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

class BoundedText {
 public:
  explicit BoundedText(std::size_t most_bytes = std::string::npos) : most_bytes_(most_bytes) {}

  // Appends a part. Throws DataError if all are more than the limit then.
  void add(std::string_view part) {
    if (part.size() > most_bytes_ - text_.size()) {
      throw DataError(
          fmt::format("normalizer: makes more than {} bytes of a text, far more than any language "
                      "needs; copy the file again from the model's publisher",
                      most_bytes_));
    }
    text_ += part;
  }
  // Returns the text, which is empty then.
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::size_t most_bytes_;
  std::string text_;
};

}  // namespace farstep
