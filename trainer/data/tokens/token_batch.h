// Batches of token sequences for next-token prediction.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
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

// A dataset among several.
struct WeightedTokens {
  const TokenDataset* tokens;
  double weight = 1;
};

// The windows of `length` inputs of one dataset, or of several, one after the other.
class TokenWindows : public Examples {
 public:
  // The datasets must outlive this.
  TokenWindows(const TokenDataset& dataset, int64_t length)
      : datasets_{{&dataset}}, length_(length) {}
  // `by_weight`: the numbers have of each dataset only a share by its weight, spread evenly over
  // its windows. So all numbers together are the mixture, to validate with. Else they have all
  // windows.
  TokenWindows(std::vector<WeightedTokens> datasets, int64_t length, bool by_weight)
      : datasets_(std::move(datasets)), length_(length), by_weight_(by_weight) {}

  int64_t size() const override;
  std::vector<SourceShare> sources() const override;
  // The batch's memory is a TokenBatch.
  Batch read(std::span<const int64_t> windows) const override;

 private:
  const std::vector<WeightedTokens> datasets_;
  const int64_t length_;
  const bool by_weight_ = false;
};

}  // namespace farstep
