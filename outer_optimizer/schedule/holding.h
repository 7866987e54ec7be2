// What a site has of a sync that failed, as it tells the others when the sync is repeated.
#pragma once

#include <cstdint>
#include <vector>

#include "outer_optimizer/schedule/partition.h"
#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

// Ranges are relative to the fragment's begin.
struct Holding {
  std::vector<Range> partition;  // what the site reduced, in its order
  std::vector<Range> received;   // of that: where it has the encoded values of `deltas`
  std::vector<int64_t> deltas;   // their numbers

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("partition", partition, "the ranges of the fragment that the site reduced", kRequired);
    visit("received", received, "of these, the ones of which it has the values of all deltas",
          kRequired);
    visit("deltas", deltas, "the numbers of these deltas", kRequired);
  }
  bool operator==(const Holding&) const = default;
};

}  // namespace farstep::outer_optimizer
