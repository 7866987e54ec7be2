// The planner's knowledge of the sites when a run starts: the profiles that the sites sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_knowledge.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"
#include "wan/protocol/protocol.h"

namespace farstep {

// Returns the site's own profile as JSON for its peers; null if its config names none. Throws
// ConfigError if the file cannot be read or is another site's profile.
Json own_profile(const SiteConfig& site);

// Returns the knowledge of each site of the run, in the order of its config. Throws ConfigError if
// a profile is malformed, or was measured with another model than `model`.
std::vector<heterogeneity::SiteKnowledge> known_sites(const RunConfig& run,
                                                      const wan::Welcome& welcome,
                                                      const heterogeneity::ProfiledModel& model);

// Returns how many connections two sites need by the profiled links, for a run with a
// `plan.wan_target`. nullopt if the run has none or the profiles lack the figures. Throws
// ConfigError if a profile is malformed.
std::optional<int64_t> planned_lanes(const RunConfig& run, const wan::Welcome& welcome);

// Returns the seconds of a sequence on each device of the site; nullopt where the profile has no
// step time of the device.
std::vector<std::optional<double>> known_sequence_seconds(
    const std::optional<heterogeneity::SiteProfile>& profile, std::size_t num_devices);

}  // namespace farstep
