// One batch is read while the step before trains. The prefetched batch counts as not taken: its
// place is known from the numbers alone, so a resumed run needs nothing of it.
#include "trainer/data/loader.h"

#include <utility>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

Loader::Loader(const Examples& examples, const Sampler& sampler)
    : examples_(examples), sampler_(sampler) {}

void Loader::start_round(const RoundRange& range, int64_t first, int64_t batch) {
  range_ = range;
  next_example_ = first;
  prefetch(batch);
}

// A batch of another size replaces the prefetched one, which was not counted yet.
Batch Loader::next(int64_t examples) {
  FARSTEP_CHECK(prefetched_.valid(), "a batch is asked for before its round has started");
  if (examples != prefetch_examples_) prefetch(examples);
  Batch batch = prefetched_.get();
  next_example_ += examples;
  // One batch ahead suffices: reading takes far less than a step.
  prefetch(examples);
  return batch;
}

void Loader::take_back(int64_t examples) {
  next_example_ -= examples;
  prefetch(examples);
}

void Loader::prefetch(int64_t examples) {
  FARSTEP_CHECK(examples >= 1, "a batch of {} examples", examples);
  prefetch_examples_ = examples;
  std::vector<Draw> draws;
  for (int64_t k = next_example_; k < next_example_ + examples; ++k) {
    // Here and not in the worker: range and sampler belong to the training thread.
    draws.push_back(sampler_.draw(range_, k));
  }
  prefetched_ = worker_.submit([this, draws = std::move(draws)] { return examples_.draw(draws); });
}

}  // namespace farstep
