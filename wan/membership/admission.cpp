#include "wan/membership/admission.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/config/config_file.h"

namespace farstep {

// A site without a run file takes the coordinator's run, so it cannot differ.
std::optional<std::string> objection_to_run(const RegisterMessage& newcomer, const Json& run) {
  if (!newcomer.run) return std::nullopt;
  const auto difference = first_difference(*newcomer.run, run);
  if (!difference) return std::nullopt;
  return fmt::format("the run of site {} (here) is not the coordinator's (there): {}",
                     newcomer.site, *difference);
}

// The names "here" and "there" tell the reader which site has which value.
std::optional<std::string> objection_to_site(const RegisterMessage& newcomer,
                                             const RegisterMessage& registered) {
  if (const auto difference = first_difference(newcomer.facts, registered.facts)) {
    return fmt::format("site {} (here) does not fit site {} (there): {}", newcomer.site,
                       registered.site, *difference);
  }
  if (newcomer.resume != registered.resume) {
    return fmt::format("site {} resumes from a checkpoint and site {} does not: all or none must",
                       newcomer.resume ? newcomer.site : registered.site,
                       newcomer.resume ? registered.site : newcomer.site);
  }
  return std::nullopt;
}

// The set of sync counts that all sites offer; its largest member loses the least work.
std::optional<int64_t> start_syncs_of(const std::vector<RegisterMessage>& sites) {
  if (!sites.front().resume) return 0;
  std::optional<int64_t> highest;
  for (const int64_t syncs : sites.front().resumable_syncs) {
    const bool is_common = std::all_of(sites.begin(), sites.end(), [&](const auto& site) {
      const auto& offered = site.resumable_syncs;
      return std::find(offered.begin(), offered.end(), syncs) != offered.end();
    });
    if (is_common) highest = std::max(highest.value_or(syncs), syncs);
  }
  return highest;
}

std::string resumable_syncs_text(const std::vector<RegisterMessage>& sites) {
  std::vector<std::string> parts;
  for (const auto& site : sites) {
    parts.push_back(fmt::format("{} has [{}]", site.site, fmt::join(site.resumable_syncs, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace farstep
