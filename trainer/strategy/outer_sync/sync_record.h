// The record of a committed sync. Values; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wan/protocol/protocol.h"

namespace farstep {

// A committed sync.
struct SyncRecord {
  wan::SyncId id;
  int64_t generation = 0;
  std::vector<std::string> members;           // of that generation: the sites that took part
  std::vector<wan::Newcomer> newcomers = {};  // that get the state after it
  double averaging_weight = 0;                // of this site's delta
  // The hash that the sites voted on. With a round's last fragment it covers all of theta_global.
  std::string theta_hash;
  // The time from this site's delta until all sites had theirs, and from then until the commit.
  double wait_seconds = 0, wan_seconds = 0;
  // The parts of these times that training did not hide.
  double exposed_wait_seconds = 0, exposed_wan_seconds = 0;
  std::vector<wan::Contribution> contributions;  // of the members, in their order
  std::vector<wan::Outlier> outliers = {};       // of these, whose deltas are out of proportion
  int64_t saturated = 0;  // values of this site's delta that the codec cannot send

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", id.round, "the sync's round", kRequired);
    visit("fragment", id.fragment, "its fragment", kRequired);
    visit("generation", generation, "of the membership", kRequired);
    visit("members", members, "of that generation", kRequired);
    visit("newcomers", newcomers, "that get the state after it");
    visit("averaging_weight", averaging_weight, "of this site's delta", kRequired);
    visit("theta_hash", theta_hash, "that the sites voted on", kRequired);
    visit("wait_seconds", wait_seconds, "until all sites had their delta", kRequired);
    visit("wan_seconds", wan_seconds, "from then to the commit", kRequired);
    visit("exposed_wait_seconds", exposed_wait_seconds, "of it, not hidden by training", kRequired);
    visit("exposed_wan_seconds", exposed_wan_seconds, "of it, not hidden by training", kRequired);
    visit("contributions", contributions, "of the members", kRequired);
    visit("outliers", outliers, "of these, whose deltas are out of proportion");
    visit("saturated", saturated, "values of this site's delta that the codec cannot send",
          at_least(0));
  }
};

}  // namespace farstep
