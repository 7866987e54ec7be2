#include "heterogeneity/simulate/site_sync.h"

#include <algorithm>

namespace farstep::heterogeneity {

// Training hides the parts of a sync in the order in which they happen.
SyncSeconds exposed_part(const SyncSeconds& all, double hidden_seconds) {
  auto left = all;
  for (auto* part : {&left.wait, &left.exchange, &left.outer, &left.vote}) {
    const double hidden = std::min(*part, hidden_seconds);
    *part -= hidden;
    hidden_seconds -= hidden;
  }
  return left;
}

}  // namespace farstep::heterogeneity
