// The coordinator's state of one sync: first all sites arrive, then all vote. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "wan/admission/served_run.h"
#include "wan/protocol/protocol.h"

namespace farstep::wan {

class OpenSync {
 public:
  // A sync that needs every one of `sites`, the members of the generation. `judge` looks at their
  // contributions when all have arrived.
  OpenSync(int64_t generation, const SyncId& id, std::vector<std::string> sites,
           DeltaJudge judge = judge_nothing);

  int64_t generation() const { return generation_; }
  const SyncId& id() const { return id_; }

  // Records a site's message of this sync. A repetition has no effect.
  void arrive(const std::string& site, const ArriveMessage& message);
  void vote(const std::string& site, const VoteMessage& message);

  // Returns the message of a site that has arrived.
  const ArriveMessage& arrival(const std::string& site) const { return arrivals_.at(site); }
  bool has_arrived(const std::string& site) const { return arrivals_.contains(site); }
  bool anyone_arrived() const { return !arrivals_.empty(); }
  bool all_arrived() const { return arrivals_.size() == sites_.size(); }
  bool all_voted() const { return votes_.size() == sites_.size(); }

  // Return the sites whose theta_global before the sync (after the exchange) differs from that of
  // more than half of the sites, each with its hash. Without such a majority they return all sites,
  // because the right value is unknown. Empty if all are equal.
  std::string differing_arrivals() const;
  std::string differing_votes() const;

  // Starts the exchange; all sites must have arrived. `newcomers` get the state after this sync.
  void start(std::vector<Newcomer> newcomers);
  bool has_started() const { return has_started_; }
  const std::vector<Newcomer>& newcomers() const { return newcomers_; }
  // Returns the members that can hand over the state after the sync, the fastest uplink first. All
  // must have arrived. A machine whose delta is left out is not trusted with it.
  std::vector<std::string> donors() const;
  // Returns the hash of the votes, which must be equal.
  const std::string& voted_hash() const { return votes_.begin()->second.theta_hash; }

  // Returns the signal of the start.
  Go go() const;

 private:
  std::vector<Contribution> contributions() const;  // of all members

  int64_t generation_;
  SyncId id_;
  std::vector<std::string> sites_;
  std::map<std::string, ArriveMessage> arrivals_;  // by site
  std::map<std::string, VoteMessage> votes_;       // by site
  DeltaJudge judge_;
  std::vector<Outlier> outliers_;
  std::vector<Newcomer> newcomers_;
  bool has_started_ = false;
};

}  // namespace farstep::wan
