// How the sites' deltas become one mean.
//
// An exchange is called by one thread at a time. After a PeerError its transport is dead, and the
// values are undefined; the caller still has what they were made from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  // In: this site's delta. Out: sum_i coefficient_i delta_i, with the same bits at every site.
  // `residual`, if there is one, has the values' size and gets what the encoding left out of this
  // site's delta. Throws PeerError naming the site that failed.
  virtual void average(const SyncPoint& point, std::span<float> values,
                       std::span<float> residual = {}) = 0;
};

}  // namespace farstep
