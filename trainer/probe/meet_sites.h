// Brings the sites of a run together over the run's own addresses and ports, before it trains: they
// check that all reach each other, measure their links, and tell each other what they found.
//
// `farstep profile --links` and `farstep doctor --peers` do so at all sites at once.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/base/view.h"
#include "trainer/probe/site_note.h"
#include "trainer/settings/load_config.h"
#include "trainer/settings/run_config.h"

namespace farstep {

struct MeetingRequest {
  std::string command;  // a site that joins by another command is refused
  double seconds = 1;   // of LinkProbe
  // How long to wait for the others; nullopt: deadlines.join_seconds.
  std::optional<double> wait_seconds = {};
  std::string data_digest = {};
};

struct Meeting {
  View view;                    // who came
  RunConfig run;                // the coordinator's, with the type of products that they agreed on
  std::vector<SiteNote> notes;  // by place in the view
};

// Joins, measures and leaves. Returns nullopt if a stop was requested meanwhile. Throws ConfigError
// if sites differ or cannot reach each other, and PeerError if one does not come or is lost.
std::optional<Meeting> meet_sites(const LoadedSite& loaded, const MeetingRequest& request,
                                  Clock& clock, const std::stop_token& stop);

}  // namespace farstep
