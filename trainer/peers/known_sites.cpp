// The planner's first knowledge comes from profiles, which sites hand in when they register. All
// sites get the same ones from the coordinator, so that they make the same plan.
#include "trainer/peers/known_sites.h"

#include <algorithm>

#include "heterogeneity/knowledge/step_time.h"
#include "heterogeneity/plan/sync_plan.h"
#include "heterogeneity/policy/policy.h"
#include "trainer/base/error.h"
#include "trainer/config/config_file.h"

namespace farstep {

Json own_profile(const SiteConfig& site) {
  if (site.profile.empty()) return nullptr;
  const auto profile = heterogeneity::site_profile_from_json(load_json(site.profile), site.profile);
  if (profile.site != site.name) {
    JsonPath{site.profile, "site"}.fail(
        fmt::format("is '{}'; this site is '{}'", profile.site, site.name));
  }
  return to_json(profile);
}

namespace {

std::string source_of(const heterogeneity::SiteKnowledge& site) {
  return "the profile of site " + site.site;
}

std::vector<heterogeneity::SiteKnowledge> profiled_sites(const RunConfig& run,
                                                         const wan::Welcome& welcome) {
  auto sites = sites_of(run.sites);
  for (const auto& first : welcome.first_sites) {
    auto site = std::ranges::find(sites, first.site, &heterogeneity::SiteKnowledge::site);
    if (site == sites.end()) {
      site = sites.insert(site, heterogeneity::SiteKnowledge{});
      site->site = first.site;
    }
    if (!first.profile.is_null()) {
      site->profile = heterogeneity::site_profile_from_json(first.profile, source_of(*site));
    }
  }
  return sites;
}

}  // namespace

std::vector<heterogeneity::SiteKnowledge> known_sites(const RunConfig& run,
                                                      const wan::Welcome& welcome,
                                                      const heterogeneity::ProfiledModel& model) {
  auto sites = profiled_sites(run, welcome);
  // Figures of another model would give a wrong plan, and nobody would see why.
  for (const auto& site : sites) {
    if (!site.profile || !site.profile->model || *site.profile->model == model) continue;
    throw ConfigError(
        fmt::format("{} was measured with another model ({}) than the run's ({}): make it again "
                    "with `farstep profile`",
                    source_of(site), text_of(*site.profile->model), text_of(model)));
  }
  return sites;
}

std::optional<int64_t> planned_lanes(const RunConfig& run, const wan::Welcome& welcome) {
  if (!run.plan.wan_target) return std::nullopt;
  return heterogeneity::lanes_for(profiled_sites(run, welcome));
}

std::vector<std::optional<double>> known_sequence_seconds(
    const std::optional<heterogeneity::SiteProfile>& profile, std::size_t num_devices) {
  std::vector<std::optional<double>> seconds(num_devices);
  if (!profile) return seconds;
  for (std::size_t i = 0; i < std::min(num_devices, profile->devices.size()); ++i) {
    const auto fit = fit_step_time(profile->devices[i].step_seconds);
    if (fit && fit->sequence_seconds > 0) seconds[i] = fit->sequence_seconds;
  }
  return seconds;
}

}  // namespace farstep
