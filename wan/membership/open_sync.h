// One sync as the coordinator sees it: first all sites arrive, then all vote. Not thread-safe: one
// owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wan/membership/protocol.h"

namespace farstep {

class OpenSync {
 public:
  // One that needs every one of `sites`, given in order of site ids.
  OpenSync(int64_t generation, const SyncId& id, std::vector<std::string> sites);

  int64_t generation() const { return generation_; }
  const SyncId& id() const { return id_; }

  // Takes note of a site's message of this sync; a repetition changes nothing.
  void arrive(const std::string& site, const ArriveMessage& message);
  void vote(const std::string& site, const VoteMessage& message);

  bool anyone_arrived() const { return !arrivals_.empty(); }
  bool all_arrived() const { return arrivals_.size() == sites_.size(); }
  bool all_voted() const { return votes_.size() == sites_.size(); }

  // The sites whose theta_global before the sync (after the exchange) is not that of more than half
  // of them, each with its hash; without such a majority all of them, as nobody can tell who is
  // wrong; empty if all are equal.
  std::string differing_arrivals() const;
  std::string differing_votes() const;

  // The signal to start the exchange; all must have arrived.
  Go go() const;

 private:
  int64_t generation_;
  SyncId id_;
  std::vector<std::string> sites_;
  std::map<std::string, ArriveMessage> arrivals_;  // by site
  std::map<std::string, VoteMessage> votes_;       // by site
};

}  // namespace farstep
