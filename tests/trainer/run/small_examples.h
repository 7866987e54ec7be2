// The data of sites that train the small model: sequences of nine tokens.
#pragma once

#include <memory>
#include <span>

#include "tests/trainer/inner/small_training.h"
#include "trainer/data/examples.h"

namespace farstep {

class SmallExamples : public Examples {
 public:
  int64_t size() const override { return 100; }
  Batch read(std::span<const int64_t> numbers) const override {
    auto batch = std::make_shared<TokenBatch>(
        TokenBatch{.sequences = std::ssize(numbers), .length = 9, .tokens = {}});
    for (const int64_t number : numbers) {
      const auto& row = some_batch(1, 9, number).tokens;
      batch->tokens.insert(batch->tokens.end(), row.begin(), row.end());
    }
    return {.view = *batch, .memory = batch};
  }
};

}  // namespace farstep
