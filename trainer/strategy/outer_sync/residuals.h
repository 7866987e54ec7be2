// The residuals of error feedback (outer_optimizer/codec/feedback.h): those of this site's deltas,
// and those of the means that it encodes for all sites. A residual is added to the next value of
// its kind. When that sync is committed, its own residual replaces the old one.
//
// Memory: the model's size for the deltas, and this site's part of it for the means. Besides, for
// the sync under way, a fragment's size and this site's part of a fragment. Belongs to one thread,
// except the buffers that next() returns: they belong to the exchange until commit() or the next
// next().
#pragma once

#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/memory/named_buffers.h"

namespace farstep {

class Residuals {
 public:
  // Returns whether there are no residuals, as without error feedback. Then all calls but keep()
  // are no-ops.
  bool empty() const { return of_deltas_.empty(); }
  // The ranges whose means this site encodes, by fragment.
  using OwnRanges = std::vector<std::vector<outer_optimizer::Range>>;
  // Keeps residuals from here on, for a model that is synced in `fragments`. Present residuals
  // stay; those of means stay where this site still encodes the mean.
  void keep(std::vector<outer_optimizer::Range> fragments, OwnRanges own);
  // Drops all residuals.
  void drop();

  // Adds the fragment's residual to its `delta` before encoding.
  void add_to_delta(int64_t fragment, std::span<float> delta) const;
  // Returns the buffers for the residuals that the exchange leaves; empty without error feedback.
  outer_optimizer::ResidualSpans next(int64_t fragment);
  // Replaces the fragment's residuals by those of its sync, which is committed.
  void commit(int64_t fragment);

  // Adds the residuals to a checkpoint's `buffers`. No sync may be under way.
  void add_to(NamedBuffers& buffers);

 private:
  std::span<float> left_of_mean(int64_t fragment);

  std::vector<outer_optimizer::Range> fragments_;
  OwnRanges own_;
  std::vector<float> of_deltas_, next_of_deltas_;
  std::vector<float> of_means_, next_of_means_;  // own_'s elements in its order
};

}  // namespace farstep
