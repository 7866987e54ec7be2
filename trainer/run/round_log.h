// What is recorded of a round's syncs and of the round itself: its events, and the figures that the
// coordinator sums up.
//
// Belongs to the training thread, for the time of one round.
#pragma once

#include <optional>
#include <vector>

#include "trainer/run/session.h"
#include "trainer/strategy/strategy.h"
#include "wan/transport/transport.h"

namespace farstep {

class RoundLog {
 public:
  // A round begins, or goes on; counts the session's traffic from here. The session must outlive
  // it.
  explicit RoundLog(Session& session);

  // Records a sync that was applied, and what was sent since the one before it.
  void add(const SyncRecord& sync);
  // Records the round, whose syncs to be applied in it are, and tells the coordinator of it.
  void finish();

  // The newest sync; nothing if none was applied, as in the first round of an eager run.
  const std::optional<SyncRecord>& newest_sync() const { return newest_sync_; }

 private:
  std::string hash_of_theta_global() const;
  void record_links();

  Session& session_;
  const LinkState before_;               // the round; all links together
  std::vector<LinkState> links_before_;  // by rank; the own one is empty
  uint64_t sent_bytes_;                  // before the sync to come
  std::optional<SyncRecord> newest_sync_;
};

}  // namespace farstep
