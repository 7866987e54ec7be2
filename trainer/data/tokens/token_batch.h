// Batches of token sequences for next-token prediction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/example_form.h"
#include "trainer/data/examples.h"
#include "trainer/data/tokens/token_dataset.h"

namespace farstep {

// Returns the form of sequences with `length` inputs. Their tokens are from 0 to before
// `vocabulary`; 0: any.
ExampleForm token_form(int64_t length, int64_t vocabulary = 0);

struct TokenBatch {
  int64_t sequences = 0;
  int64_t length = 0;           // inputs of a sequence
  std::vector<int64_t> tokens;  // (sequences, length + 1), row-major; a target is the next token

  // One part, the tokens. Holds as long as this.
  operator BatchView() const;  // implicit: a batch of tokens is a batch
};

// The windows of `length` inputs of a dataset.
class TokenWindows : public Examples {
 public:
  // `dataset` must outlive this.
  TokenWindows(const TokenDataset& dataset, int64_t length) : dataset_(dataset), length_(length) {}

  int64_t size() const override { return dataset_.num_windows(length_); }
  // The batch's memory is a TokenBatch.
  Batch read(std::span<const int64_t> windows) const override;

 private:
  const TokenDataset& dataset_;
  const int64_t length_;
};

}  // namespace farstep
