// A site's part in the search for deltas that are out of proportion: what it says of its own, and
// what it makes of the coordinator's verdicts (outer_optimizer/schedule/outliers.h).
//
// Not thread-safe: the sync's worker calls it while a sync is under way, the training thread else.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trainer/strategy/outer_sync/delta_history.h"
#include "trainer/strategy/outer_sync/strategy_ground.h"
#include "wan/protocol/protocol.h"

namespace farstep {

class OutlierWatch {
 public:
  OutlierWatch(const outer_optimizer::SyncConfig& sync, const StepBound& bound);

  // Begins with these settings. The past deltas stay if the fragments do. Else nothing is known of
  // what was sent, unless there is no residual of it.
  void retune(const outer_optimizer::SyncConfig& sync, bool has_residuals);
  // Forgets the past deltas. The residuals are zeros.
  void begin_anew() { history_.restart(fragments_, true); }

  // Returns the figures of a delta, whose steps began from `theta`; nullopt if nobody is to judge
  // it. The largest value is infinite if one of the delta is; NaN is not allowed.
  std::optional<outer_optimizer::DeltaFigures> figures(int64_t fragment,
                                                       std::span<const float> delta,
                                                       std::span<const float> theta,
                                                       const outer_optimizer::Work& work,
                                                       bool has_residual) const;
  // Takes note of the sync that `go` began, which is committed. This site is at `place`.
  void commit(const wan::Go& go, std::size_t place);
  // Throws DivergenceError if this site's deltas were left out in three rounds in a row.
  void require_sound() const;

  // The state for a checkpoint. Of an older version's, empty, nothing is known.
  const std::vector<DeltaPast>& state() const { return history_.state(); }
  void restore(std::vector<DeltaPast> past);

 private:
  int64_t fragments_ = 1;
  StepBound bound_;
  bool is_judged_ = true, is_mixed_ = false;
  DeltaHistory history_;
  int64_t rounds_left_out_ = 0;  // in a row
  int64_t last_left_out_ = 0;    // round
  std::string last_reason_;
};

// Returns the work of each member, in their order; none for one whose delta is left out. Throws
// DivergenceError if more than half of those that bring work are left out.
std::vector<outer_optimizer::Work> counted_works(const wan::Go& go, int64_t fragments);

// Logs the members whose deltas are out of proportion.
void log_outliers(const wan::SyncId& id, int64_t fragments, std::span<const wan::Outlier> outliers);

}  // namespace farstep
