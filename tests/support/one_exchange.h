// Exchanges of tests: of whole deltas alone, and those of a run whose view never changes.
#pragma once

#include <stdexcept>

#include "outer_optimizer/exchange/exchange.h"

namespace farstep {

// An exchange for strategies that average whole deltas.
class DeltaExchange : public Exchange {
 public:
  void average_parts(const SyncPoint&, std::span<const std::vector<Range>>, FinalParts&,
                     std::span<float>) override {
    throw std::logic_error("this exchange averages whole deltas");
  }
};

class OneExchange : public Exchanges {
 public:
  // `exchange` must outlive this.
  explicit OneExchange(Exchange& exchange) : exchange_(exchange) {}
  Exchange& among(const View& /*view*/) override { return exchange_; }
  Transport& connections(const View& /*view*/) override {
    throw std::logic_error("this exchange has no connections");
  }

 private:
  Exchange& exchange_;
};

}  // namespace farstep
