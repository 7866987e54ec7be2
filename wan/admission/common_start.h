// The state with which a run begins: that of the sites' checkpoints which most of them can go on
// from. A vote of the sites that are there. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wan/admission/served_run.h"
#include "wan/protocol/protocol.h"

namespace farstep::wan {

struct CommonStart {
  // What all members have; after no syncs they begin anew, and the other fields say nothing of it.
  OfferedState state;
  // Sites that have it. The others that are there begin as newcomers.
  std::vector<std::string> members;
  // More than half of the sites that took part in the state have it: no others can begin with
  // another one.
  bool has_majority = false;
  // All sites that took part in the newest state offered are there. So one that is away has no
  // newer state.
  bool has_newest_members = false;
  std::string left;  // which states are left for this one, in words; empty if none are
};

// Returns the state with which `sites`, which fit each other and have different names, begin `run`.
// If none of them always resumes, it is none: all begin anew. So do sites without any checkpoint
// beside others that have done no sync.
//
// Otherwise it is the newest state that min_sites have, and a majority of the sites that took part
// in it. If there is none, it is the newest with that majority, else the newest that min_sites
// have, and else the newest of all. If the run takes no newcomers, it is the newest that all have.
// States are equal by number of syncs and checksum. Returns nullopt if there is none.
std::optional<CommonStart> common_start_of(const std::vector<RegisterMessage>& sites,
                                           const ServedRun& run);

// Returns why there is none, with what each site has, and what to do.
std::string no_common_start_text(const std::vector<RegisterMessage>& sites);

}  // namespace farstep::wan
