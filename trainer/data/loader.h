// Reads a site's own batches in order, each while the one before is trained on.
//
// One owner thread calls the methods; a worker thread reads.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "trainer/base/worker.h"
#include "trainer/data/batch_source.h"
#include "trainer/data/examples.h"
#include "trainer/data/sampler.h"

namespace farstep {

// Returns the examples of the site's step number `step`, from 0, of those that follow.
std::vector<Draw> draws_of(const Sampler& sampler, const SiteDraws& site, int64_t step);

class Loader : public BatchSource {
 public:
  // `sampler` gives the examples and their epochs. The worker reads them. `examples` must outlive
  // this.
  Loader(const Examples& examples, const Sampler& sampler);

  void begin(const StepDraws& draws) override;
  // Batches have no end: the caller counts. Rethrows an exception of reading.
  Batch next() override;

 private:
  void prefetch();

  const Examples& examples_;
  const Sampler sampler_;
  SiteDraws draws_;
  int64_t num_asked_ = 0;          // batches of draws_ that were asked for, with the prefetched one
  std::future<Batch> prefetched_;  // the next one
  Worker worker_;                  // the last member: its tasks use the others
};

}  // namespace farstep
