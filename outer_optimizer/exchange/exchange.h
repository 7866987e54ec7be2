// Turns the sites' deltas into one mean.
//
// One thread at a time calls an exchange. After a PeerError its transport is dead and the values
// are undefined. The caller keeps the data from which it made them, to repeat the exchange.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/schedule/partition.h"
#include "trainer/base/view.h"

namespace farstep {

// The values on which all sites agree before an exchange.
struct SyncPoint {
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;
  std::vector<double> coefficients = {};  // of the sites' deltas, by rank
  // The range that each site reduces, by rank; together they cover the values.
  std::vector<Range> partitions = {};
  const Codec* codec = nullptr;  // encodes the deltas and their mean
};

// The residuals of an exchange's encodings; empty without error feedback.
struct ResidualSpans {
  // As long as the values; receives the residual of this site's delta.
  std::span<float> of_delta = {};
  // As long as this site's partition. It is added to this site's part of the mean, and receives the
  // residual of that.
  std::span<float> of_mean = {};
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  // Replaces this site's delta by sum_i coefficient_i delta_i, with the same bits at every site.
  // Throws PeerError naming the site that failed.
  virtual void average(const SyncPoint& point, std::span<float> values,
                       const ResidualSpans& residuals = {}) = 0;
};

// The exchanges of a run: each view has one of its own.
class Exchanges {
 public:
  virtual ~Exchanges() = default;
  // Returns the exchange among the members of `view`, valid until the next call. All members must
  // call it at the same time for a view that is new to them. Throws PeerError.
  virtual Exchange& among(const View& view) = 0;
};

}  // namespace farstep
