// What lossy encodings have left out so far (outer_optimizer/codec/feedback.h): of this site's
// deltas, and of the means that it encodes for all. Each is added to the next one of its kind, and
// what that leaves out replaces it when the sync counts.
//
// Memory: the model's size for the deltas and this site's part of it for the means; beside them,
// for the sync under way, a fragment's size and this site's part of a fragment. Belongs to one
// thread, but for the places that begin() gives out, which are another one's until commit() or the
// next begin().
#pragma once

#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/named_buffers.h"

namespace farstep {

class Residuals {
 public:
  // Whether nothing is kept, as without feedback; all calls below but keep() are no-ops then.
  bool empty() const { return of_deltas_.empty(); }
  // Keeps, from here on, what is left out of a model that is synced in `fragments`, of which this
  // site encodes the means of `own`, by fragment. What is kept already stays; of means, where this
  // site still encodes them.
  void keep(std::vector<Range> fragments, std::vector<Range> own);
  // Forgets all.
  void drop();

  // Adds what is left of the fragment to its `delta`, which is to be encoded. Returns the places
  // for the exchange; empty without feedback.
  Leftovers begin(int64_t fragment, std::span<float> delta);
  // The sync of the fragment counts: what its exchange left out replaces what was left.
  void commit(int64_t fragment);

  // What a checkpoint keeps, while no sync is under way.
  void add_to(NamedBuffers& buffers);

 private:
  std::span<float> left_of_mean(int64_t fragment);

  std::vector<Range> fragments_, own_;
  std::vector<float> of_deltas_, next_of_deltas_;
  std::vector<float> of_means_, next_of_means_;  // own_'s elements one after the other
};

}  // namespace farstep
