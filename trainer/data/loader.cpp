#include "trainer/data/loader.h"

#include "trainer/base/error.h"

namespace farstep {

Loader::Loader(const TokenDataset& dataset, const Sampler& sampler, int64_t sequence_length)
    : dataset_(dataset), sampler_(sampler), sequence_length_(sequence_length) {}

void Loader::start_round(const DataPosition& round_start, int64_t offset_in_round,
                         int64_t first_sequence, int64_t micro_batch) {
  round_start_ = round_start;
  offset_in_round_ = offset_in_round;
  next_sequence_ = first_sequence;
  prefetch(micro_batch);
}

TokenBatch Loader::next(int64_t sequences) {
  FARSTEP_CHECK(prefetched_.valid(), "a batch is asked for before its round has started");
  if (sequences != prefetch_sequences_) prefetch(sequences);
  TokenBatch batch = prefetched_.get();
  next_sequence_ += sequences;
  prefetch(sequences);
  return batch;
}

void Loader::prefetch(int64_t sequences) {
  FARSTEP_CHECK(sequences >= 1, "a batch of {} sequences", sequences);
  prefetch_sequences_ = sequences;
  prefetched_ = worker_.submit([this, round_start = round_start_, offset = offset_in_round_,
                                first = next_sequence_,
                                sequences] { return read(round_start, offset, first, sequences); });
}

TokenBatch Loader::read(const DataPosition& round_start, int64_t offset_in_round, int64_t first,
                        int64_t sequences) const {
  const auto row_tokens = static_cast<std::size_t>(sequence_length_ + 1);
  TokenBatch batch{sequences, sequence_length_, {}};
  batch.tokens.resize(static_cast<std::size_t>(sequences) * row_tokens);
  auto rest = std::span(batch.tokens);
  for (int64_t k = first; k < first + sequences; ++k) {
    const int64_t window = sampler_.window(round_start, offset_in_round, k);
    dataset_.read(window * sequence_length_, rest.first(row_tokens));
    rest = rest.subspan(row_tokens);
  }
  return batch;
}

}  // namespace farstep
