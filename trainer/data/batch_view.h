// A batch of training examples in host memory, whatever they are: sequences of tokens, or images
// with labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/memory/named_buffers.h"

namespace farstep {

// One tensor of a batch: a row an example, contiguous and row-major.
struct BatchPart {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // of one example's row
  std::span<const std::byte> bytes;
};

// Owns nothing: whoever makes it keeps the memory alive.
struct BatchView {
  int64_t examples = 0;
  int64_t targets = 0;  // of all examples; the loss of a step is their mean
  std::vector<BatchPart> parts;
  std::string text;  // what the examples are, for messages: "sequences of 128 tokens"
};

// A batch with its memory.
struct Batch {
  BatchView view;
  std::shared_ptr<const void> memory;  // that the view is of
};

}  // namespace farstep
