// Reads the batches of a round in order, each while the one before is trained on.
//
// One owner thread calls the methods; a worker thread reads.
#pragma once

#include <cstdint>
#include <future>

#include "trainer/base/worker.h"
#include "trainer/data/examples.h"
#include "trainer/data/sampler.h"

namespace farstep {

class Loader {
 public:
  // `sampler` gives the examples and their epochs. The worker reads them. `examples` must outlive
  // this.
  Loader(const Examples& examples, const Sampler& sampler);

  // Goes to example `first` of the site's `range` (0, or more when a round is resumed), and begins
  // to read the first `batch` examples.
  void start_round(const RoundRange& range, int64_t first, int64_t batch);

  // Returns the round's next `examples`. They have no end: the caller counts. Fast if `examples` is
  // the same as before. Rethrows an exception of reading.
  Batch next(int64_t examples);
  // Takes back the newest batch, of `examples`: next() returns it once more.
  void take_back(int64_t examples);

 private:
  void prefetch(int64_t examples);

  const Examples& examples_;
  const Sampler sampler_;
  RoundRange range_;
  int64_t next_example_ = 0;       // of the range
  int64_t prefetch_examples_ = 0;  // size of the batch in `prefetched_`
  std::future<Batch> prefetched_;  // begins at next_example_
  Worker worker_;                  // the last member: its tasks use the others
};

}  // namespace farstep
