// The ranges of the model that the members of a view reduce, as `sync` of a run file divides it.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/schedule/holding.h"
#include "outer_optimizer/schedule/partition.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/base/view.h"

namespace farstep::outer_optimizer {

// Returns each member's share of the reduction, by place. With servers, each server has share 1 and
// any other member 0: the first member serves if none is named or all of them are lost. Without
// servers all have the same share.
std::vector<double> configured_shares(const SyncConfig& sync, const View& view);

// How a range is cut among the members.
struct Cut {
  PartitionRule rule = PartitionRule::kBytes;
  std::span<const double> shares = {};  // of the members, by place
  // With kLayer: the tensors' first elements, ascending. No tensor is cut in two.
  std::span<const int64_t> borders = {};
  // With kBytes: the values of the codec's block. No block is cut in two, so the bytes of an
  // encoded value do not depend on who reduces it.
  int64_t block = 1;
};

// Returns the range of each member, by place.
std::vector<Range> cut(const Range& range, const Cut& how);

// A member of a sync, as it arrived there.
struct Arrived {
  int64_t delta = 0;                 // the number of its delta; 0 if that counts nothing
  const Holding* holding = nullptr;  // null unless it has begun the sync before
};

// Returns the members' partitions, by place, of a fragment with `size` values.
//
// If members have begun this sync before, they keep the ranges that they reduced then, and what
// they have received of all deltas that count. The rest is shared out so that all come near to
// their shares. Else, and if what they say does not go together, it is the cut of the whole.
std::vector<Partition> partitions_of_sync(int64_t size, const Cut& how,
                                          std::span<const Arrived> members);

}  // namespace farstep::outer_optimizer
