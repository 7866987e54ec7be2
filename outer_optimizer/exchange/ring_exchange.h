// A ring all-reduce as an exchange, in fp32: Gloo's own, or one over the links.
//
// It adds in the order of the ring, so its means differ from the direct exchange's by rounding.
#pragma once

#include "outer_optimizer/exchange/exchange.h"
#include "wan/transport/all_reduce.h"

namespace farstep::outer_optimizer {

class RingExchange : public Exchange {
 public:
  // For site `rank`. The ring must outlive the exchange.
  RingExchange(wan::AllReduce& ring, int rank) : ring_(ring), rank_(rank) {}
  // fp32 has no residuals: `residuals` must be empty.
  void average(const SyncPoint& point, std::span<float> values,
               const ResidualSpans& residuals = {}) override;
  // One all-reduce a part; `partitions` tell only where the parts are. Requires both hops.
  void average_parts(const SyncPoint& point, std::span<const std::vector<Range>> partitions,
                     FinalParts& source, std::span<float> values) override;

 private:
  wan::AllReduce& ring_;
  const int rank_;
};

}  // namespace farstep::outer_optimizer
