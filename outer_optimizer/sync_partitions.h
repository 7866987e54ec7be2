// The ranges of the model that the members of a view reduce, as `sync` of a run file divides it.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/schedule/partition.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/base/view.h"

namespace farstep::outer_optimizer {

// Returns each member's share of the reduction, by place. With servers, each server has share 1 and
// any other member 0: the first member serves if none is named or all of them are lost. Without
// servers all have the same share.
std::vector<double> configured_shares(const SyncConfig& sync, const View& view);

// Cuts a range by the shares of the members, by place. With PartitionRule::kLayer no tensor is cut
// in two; `borders` are the tensors' first elements, ascending.
std::vector<Range> cut(const Range& range, PartitionRule rule, std::span<const double> shares,
                       std::span<const int64_t> borders);

}  // namespace farstep::outer_optimizer
