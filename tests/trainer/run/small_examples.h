// What sites train the small model with: sequences of nine tokens, and the work of a round.
#pragma once

#include <memory>
#include <span>

#include "tests/trainer/inner/small_training.h"
#include "trainer/data/examples.h"
#include "trainer/site/site_trainer.h"

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

// A round of ten steps of the site alone.
inline SiteWork small_work(int64_t batch, int64_t micro_batch) {
  SiteWork work{.plan = {}, .draws = {.sites = {{.batch = batch}}}};
  work.plan.local_steps = 10;
  work.plan.batch = batch;
  work.plan.micro_batch = micro_batch;
  return work;
}

}  // namespace farstep
