// Records a round and its syncs: their events, and the round's figures for the coordinator.
//
// Belongs to the training thread; lives for one round.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/round/run.h"

namespace farstep {

class RoundRecord {
 public:
  // Begins the record of a round and counts its traffic from here. `run` must outlive this.
  explicit RoundRecord(Run& run);

  // Records the applied syncs, each with the bytes sent since the sync before. Adds their exposed
  // time to the site's waiting time. Returns false if a stop ended the syncs.
  [[nodiscard]] bool add(const Synced& synced);
  // Records the round after its last sync, and reports it to the coordinator.
  void finish();

  // The newest applied sync of each round that had one: of this round, of the one before with eager
  // updates, and of both in their last round.
  const std::vector<SyncRecord>& syncs() const { return syncs_; }
  // The newest of them; null if none was applied, as in the first round of eager updates.
  const SyncRecord* newest_sync() const { return syncs_.empty() ? nullptr : &syncs_.back(); }

 private:
  void add(const SyncRecord& sync);
  std::string hash_of_theta_global() const;
  void record_links();

  Run& run_;
  const LinkUse uplink_before_;                         // at the round's begin
  std::map<std::string, wan::LinkState> links_before_;  // by site
  uint64_t sent_bytes_;                                 // up to the newest sync
  std::vector<SyncRecord> syncs_;
};

}  // namespace farstep
