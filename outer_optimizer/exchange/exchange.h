// How the sites' deltas become one mean.
//
// An exchange is called by one thread at a time. After a PeerError its transport is dead, and the
// values are undefined; the caller still has what they were made from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/schedule/partition.h"

namespace farstep {

// What every site agrees on before it exchanges.
struct SyncPoint {
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;
  std::vector<double> coefficients = {};  // of the sites' deltas, in site order
  // What each site adds up for all, in site order: parts that cover the values without gaps.
  std::vector<Range> partitions = {};
  const Codec* codec = nullptr;  // how the deltas and their mean travel
};

// What the encodings of an exchange leave out; empty without error feedback.
struct Leftovers {
  // As large as the values: gets what the encoding of this site's delta left out.
  std::span<float> of_delta = {};
  // As large as this site's partition: is added to its part of the mean, and gets what the encoding
  // of that left out.
  std::span<float> of_mean = {};
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  // In: this site's delta. Out: sum_i coefficient_i delta_i, with the same bits at every site.
  // Throws PeerError naming the site that failed.
  virtual void average(const SyncPoint& point, std::span<float> values,
                       const Leftovers& leftovers = {}) = 0;
};

}  // namespace farstep
