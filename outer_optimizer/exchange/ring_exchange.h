// Gloo's ring all-reduce as an exchange, in fp32: the baseline.
//
// The sum's order is the ring's, so means differ from those of the direct exchange by rounding.
#pragma once

#include "outer_optimizer/exchange/exchange.h"
#include "wan/transport/gloo_ring.h"

namespace farstep {

class RingExchange : public Exchange {
 public:
  // Of site `rank`. The ring must outlive the exchange.
  RingExchange(GlooRing& ring, int rank) : ring_(ring), rank_(rank) {}
  // Nothing is left out: places for leftovers are a bug.
  void average(const SyncPoint& point, std::span<float> values,
               const Leftovers& leftovers = {}) override;

 private:
  GlooRing& ring_;
  const int rank_;
};

}  // namespace farstep
