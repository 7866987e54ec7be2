// Batches of a round in order, each read from the disk while the one before it is trained on.
//
// One owner thread calls; the reading is done on a worker of the loader's own.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "trainer/base/worker.h"
#include "trainer/data/sampler.h"
#include "trainer/data/token_dataset.h"

namespace farstep {

struct TokenBatch {
  int64_t sequences = 0;
  int64_t length = 0;           // inputs of a sequence
  std::vector<int64_t> tokens;  // (sequences, length + 1) row-major: targets are one later
};

class Loader {
 public:
  // `dataset` must outlive the loader; `sampler` is over its windows of `sequence_length`.
  Loader(const TokenDataset& dataset, const Sampler& sampler, int64_t sequence_length);

  // Goes to this site's sequence `first_sequence` of the round that starts at `round_start` (0, or
  // more when a round is resumed), and begins to read the first `micro_batch` sequences. The rest
  // of the position is as in Sampler::window.
  void start_round(const DataPosition& round_start, int64_t offset_in_round, int64_t first_sequence,
                   int64_t micro_batch);

  // The round's next `sequences` windows, of which there is no end: the caller counts. Quick if
  // `sequences` is as before. Rethrows what went wrong in reading them.
  TokenBatch next(int64_t sequences);

 private:
  TokenBatch read(const DataPosition& round_start, int64_t offset_in_round, int64_t first,
                  int64_t sequences) const;
  void prefetch(int64_t sequences);

  const TokenDataset& dataset_;
  const Sampler sampler_;
  const int64_t sequence_length_;
  DataPosition round_start_;
  int64_t offset_in_round_ = 0;
  int64_t next_sequence_ = 0;           // of this site in the round
  int64_t prefetch_sequences_ = 0;      // size of the batch in `prefetched_`
  std::future<TokenBatch> prefetched_;  // begins at next_sequence_
  Worker worker_;                       // last: what its tasks use is still there while it ends
};

}  // namespace farstep
