// Exchanges of tests: of whole deltas alone, and those of a run whose view never changes.
#pragma once

#include <stdexcept>

#include "outer_optimizer/exchange/exchange.h"

namespace farstep {

// An exchange for strategies that average whole deltas.
class DeltaExchange : public outer_optimizer::Exchange {
 public:
  void average_parts(const outer_optimizer::SyncPoint&,
                     std::span<const std::vector<outer_optimizer::Range>>,
                     outer_optimizer::FinalParts&, std::span<float>) override {
    throw std::logic_error("this exchange averages whole deltas");
  }
};

class OneExchange : public outer_optimizer::Exchanges {
 public:
  // `exchange` must outlive this.
  explicit OneExchange(outer_optimizer::Exchange& exchange) : exchange_(exchange) {}
  outer_optimizer::Exchange& among(const View& /*view*/) override { return exchange_; }
  wan::Transport& connections(const View& /*view*/) override {
    throw std::logic_error("this exchange has no connections");
  }

 private:
  outer_optimizer::Exchange& exchange_;
};

}  // namespace farstep
