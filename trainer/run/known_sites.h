// What the planner knows of every site when a run starts: the profiles that the sites brought.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heterogeneity/plan/site_knowledge.h"
#include "trainer/config/run_config.h"
#include "trainer/config/site_config.h"
#include "wan/membership/protocol.h"

namespace farstep {

// The site's own profile as JSON, for its peers; null if its config names none. Throws ConfigError
// if it cannot be read or is another site's.
Json own_profile(const SiteConfig& site);

// What is known of each site of the run, in order of site ids. Throws ConfigError if a profile is
// malformed, or was measured with another model than `model`.
std::vector<SiteKnowledge> known_sites(const RunConfig& run, const Welcome& welcome,
                                       const ProfiledModel& model);

// The connections between two sites that the profiled links need for a run with a
// `plan.wan_target`; nothing if it has none or the profiles do not tell. Throws ConfigError if one
// is malformed.
std::optional<int64_t> planned_lanes(const RunConfig& run, const Welcome& welcome);

// What a sequence costs on each device of the site, where its profile has timed that device.
std::vector<std::optional<double>> known_sequence_seconds(const std::optional<SiteProfile>& profile,
                                                          std::size_t num_devices);

}  // namespace farstep
