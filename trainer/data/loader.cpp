// One batch is read while the step before trains. The prefetched batch counts as not taken: its
// place is known from the numbers alone, so a resumed run needs nothing of it.
#include "trainer/data/loader.h"

#include <utility>

#include "trainer/base/error.h"

namespace farstep {

std::vector<Draw> draws_of(const Sampler& sampler, const SiteDraws& site, int64_t step) {
  std::vector<Draw> draws;
  const int64_t first = site.first + step * site.batch;
  for (int64_t k = first; k < first + site.batch; ++k) {
    draws.push_back(sampler.draw(site.range, k));
  }
  return draws;
}

Loader::Loader(const Examples& examples, const Sampler& sampler)
    : examples_(examples), sampler_(sampler) {}

void Loader::begin(const StepDraws& draws) {
  FARSTEP_CHECK(draws.own().batch >= 1, "a batch of {} examples", draws.own().batch);
  draws_ = draws.own();
  num_asked_ = 0;
  prefetch();
}

Batch Loader::next() {
  FARSTEP_CHECK(prefetched_.valid(), "a batch is asked for before its round has started");
  Batch batch = prefetched_.get();
  // One batch ahead suffices: reading takes far less than a step.
  prefetch();
  return batch;
}

void Loader::prefetch() {
  // Drawn here and not in the worker: range and sampler belong to the training thread.
  prefetched_ = worker_.submit(
      [this, draws = draws_of(sampler_, draws_, num_asked_)] { return examples_.draw(draws); });
  ++num_asked_;
}

}  // namespace farstep
