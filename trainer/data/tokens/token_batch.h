// Batches of token sequences for next-token prediction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trainer/data/batch_view.h"
#include "trainer/data/tokens/token_dataset.h"

namespace farstep {

struct TokenBatch {
  int64_t sequences = 0;
  int64_t length = 0;           // inputs of a sequence
  std::vector<int64_t> tokens;  // (sequences, length + 1), row-major; a target is the next token

  // One part, the tokens. Holds as long as this.
  operator BatchView() const;  // implicit: a batch of tokens is a batch
};

// Returns what reads windows of `length` inputs by their numbers. `dataset` must outlive it.
std::function<Batch(std::span<const int64_t> windows)> window_reader(const TokenDataset& dataset,
                                                                     int64_t length);

}  // namespace farstep
