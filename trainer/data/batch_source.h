// Where the batches of a site's steps come from: from its own examples, or from another site.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/base/view.h"
#include "trainer/data/batch_view.h"
#include "trainer/data/sampler.h"

namespace farstep {

// A site's examples in the next steps of a round.
struct SiteDraws {
  RoundRange range = {};
  int64_t first = 0;  // example of the range with which the next step begins
  int64_t batch = 1;  // examples of each step; 0: the site serves alone
};

// The examples of all sites in the next steps of a round, or of a newly planned rest of it. Those
// of other sites hold where all take every step together.
struct StepDraws {
  int64_t round = 1;
  int64_t steps_done = 0;  // of the round
  // So many follow, unless the round ends by a deadline. More may be planned after them.
  int64_t steps = 0;
  View view = {};                     // that of the round
  std::vector<SiteDraws> sites = {};  // by place in the view

  const SiteDraws& own() const { return sites.at(view.self); }
};

// Belongs to the training thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Goes to these steps, and begins to get the batch of the first. All batches of the steps before
  // have been taken, unless the source reads its own examples.
  virtual void begin(const StepDraws& draws) = 0;
  // Returns the batch of the next step, and begins to get the one after it. Throws DataError if it
  // cannot be read, PeerError if it does not come.
  virtual Batch next() = 0;
  // Whether another site sends the batches. To wait for one is then to wait for that site.
  virtual bool comes_from_peer() const { return false; }
};

}  // namespace farstep
