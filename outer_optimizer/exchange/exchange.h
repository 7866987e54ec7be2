// Turns the sites' deltas into one mean.
//
// One thread at a time calls an exchange. After a PeerError its transport is dead and the values
// are undefined. The caller keeps the data from which it made them, to repeat the exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/exchange/received_deltas.h"
#include "outer_optimizer/schedule/partition.h"
#include "trainer/base/view.h"
#include "wan/collective/reduce_gather.h"
#include "wan/transport/transport.h"

namespace farstep::outer_optimizer {

// The values on which all sites agree before an exchange.
struct SyncPoint {
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;
  std::vector<double> coefficients = {};  // of the sites' deltas, by rank
  // What each site reduces, by rank; together it covers the values.
  std::vector<Partition> partitions = {};
  const Codec* codec = nullptr;            // encodes the deltas and their mean
  wan::Hops hops = wan::Hops::kThereBack;  // with one of them alone, see Exchange::average_parts()
  // Keeps what a direct exchange receives of the deltas, for another one of this sync; null: it is
  // not kept. It has what is called received in this site's partition.
  ReceivedDeltas* received = nullptr;
};

// The residuals of an exchange's encodings; empty without error feedback.
struct ResidualSpans {
  // As long as the values; receives the residual of this site's delta.
  std::span<float> of_delta = {};
  // As long as this site's partition, in the order of its ranges. It is added to this site's part
  // of the mean, and receives the residual of that.
  std::span<float> of_mean = {};
};

// Values that become final part after part while they are exchanged, as a gradient does during
// backward. Threads of the exchange call both functions.
class FinalParts {
 public:
  virtual ~FinalParts() = default;
  // Returns whether this part, and all before it, are final.
  virtual bool is_final(std::size_t part) const = 0;
  // Waits until that is so. Throws if it will never be.
  virtual void wait_until_final(std::size_t part) = 0;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  // Replaces this site's delta by sum_i coefficient_i delta_i, with the same bits at every site.
  // Throws PeerError naming the site that failed.
  virtual void average(const SyncPoint& point, std::span<float> values,
                       const ResidualSpans& residuals = {}) = 0;

  // The same for values that become final in parts. partitions[k] has the ranges of part k that
  // the sites reduce, in their order and without gaps; those of `point` are not used. A part
  // travels as soon as it is final, while later ones are not.
  //
  // A site with coefficient 0 sends none of its values.
  //
  // With Hops::kThere only the site that reduces a range gets its sum; the others' values are
  // undefined there. With Hops::kBack nothing is added: every site gets the values of the site to
  // which a range belongs. Throws as average() does, and what `source` throws.
  virtual void average_parts(const SyncPoint& point, std::span<const std::vector<Range>> partitions,
                             FinalParts& source, std::span<float> values) = 0;
};

// The phases (Tag::phase) of messages beside an exchange, whose own are 0 and 1: a site's sign that
// its backward has ended, and the batch of a step.
inline constexpr uint32_t kEndOfBackwardPhase = 2, kBatchPhase = 3;

// The exchanges of a run: each view has one of its own.
class Exchanges {
 public:
  virtual ~Exchanges() = default;
  // Returns the exchange among the members of `view`, valid until the next call. All members must
  // call it at the same time for a view that is new to them. Throws PeerError, which names this
  // site if it cannot take part for now; and ConfigError if it cannot until its config is changed.
  virtual Exchange& among(const View& view) = 0;
  // Returns the connections of `view`, which among() has made, for messages beside its exchange.
  virtual wan::Transport& connections(const View& view) = 0;
};

}  // namespace farstep::outer_optimizer
