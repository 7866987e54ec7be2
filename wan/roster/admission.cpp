// The run starts when all that register agree on everything that would make it go wrong silently:
// the run file, the data, and the checkpoint to go on from.
#include "wan/roster/admission.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trainer/config/config_file.h"

namespace farstep::wan {

namespace {

// Returns the facts that `others` have too. A site that serves alone has no data, and says nothing
// of it.
Json common_facts(const Json& facts, const Json& others) {
  auto common = Json::object();
  for (const auto& fact : facts.items()) {
    if (others.contains(fact.key())) common[fact.key()] = fact.value();
  }
  return common;
}

}  // namespace

// A site without a run file takes the coordinator's run, so it cannot differ.
std::optional<std::string> objection_to_run(const RegisterMessage& newcomer, const Json& run) {
  if (!newcomer.run) return std::nullopt;
  const auto difference = first_difference(*newcomer.run, run);
  if (!difference) return std::nullopt;
  return fmt::format("the run of site {} (here) is not the coordinator's (there): {}",
                     newcomer.site, *difference);
}

// The names "here" and "there" tell the reader which site has which value.
std::optional<std::string> objection_to_facts(const RegisterMessage& newcomer,
                                              const RegisterMessage& registered) {
  const auto difference = first_difference(common_facts(newcomer.facts, registered.facts),
                                           common_facts(registered.facts, newcomer.facts));
  if (!difference) return std::nullopt;
  return fmt::format("site {} (here) does not fit site {} (there): {}", newcomer.site,
                     registered.site, *difference);
}

std::optional<std::string> objection_to_checkpoints(const RegisterMessage& newcomer) {
  const auto impossible = std::ranges::find_if(newcomer.resumable_syncs, [](int64_t syncs) {
    return syncs < 0 || static_cast<double>(syncs) > kMostCount;
  });
  if (impossible == newcomer.resumable_syncs.end()) return std::nullopt;
  return fmt::format("site {} offers a checkpoint after {} syncs, which no run can have done",
                     newcomer.site, *impossible);
}

std::optional<std::string> objection_to_resume(const RegisterMessage& newcomer,
                                               const RegisterMessage& registered) {
  // A site that may do either follows the others.
  if (newcomer.resume == registered.resume || newcomer.resume == Resume::kAuto ||
      registered.resume == Resume::kAuto) {
    return std::nullopt;
  }
  const bool newcomer_resumes = newcomer.resume == Resume::kAlways;
  return fmt::format("site {} resumes from a checkpoint and site {} does not: all or none must",
                     newcomer_resumes ? newcomer.site : registered.site,
                     newcomer_resumes ? registered.site : newcomer.site);
}

namespace {

// A site may be lost before its first checkpoint, while the others save theirs in mid-round. Nobody
// loses anything but local steps if it begins anew.
bool can_begin_anew(const std::vector<RegisterMessage>& sites) {
  const auto has_some = [](const auto& site) { return !site.resumable_syncs.empty(); };
  const auto has_no_sync = [](const auto& site) {
    return std::ranges::all_of(site.resumable_syncs, [](int64_t syncs) { return syncs == 0; });
  };
  return std::ranges::any_of(sites, has_some) && std::ranges::all_of(sites, has_no_sync);
}

int64_t newest_of(const RegisterMessage& site) {
  const auto& offered = site.resumable_syncs;
  return offered.empty() ? -1 : *std::ranges::max_element(offered);
}

}  // namespace

// The set of sync counts that all sites offer; its largest member loses the least work.
std::optional<int64_t> start_syncs_of(const std::vector<RegisterMessage>& sites) {
  const bool resumes = std::ranges::count(sites, Resume::kAlways, &RegisterMessage::resume) > 0;
  if (!resumes || can_begin_anew(sites)) return 0;
  // In order, as a site may offer any number of them.
  std::set<int64_t> common(sites.front().resumable_syncs.begin(),
                           sites.front().resumable_syncs.end());
  for (const auto& site : sites) {
    const std::set<int64_t> offered(site.resumable_syncs.begin(), site.resumable_syncs.end());
    std::erase_if(common, [&](int64_t syncs) { return !offered.contains(syncs); });
  }
  if (common.empty()) return std::nullopt;
  return *common.rbegin();
}

std::string no_common_start_text(const std::vector<RegisterMessage>& sites, std::string_view unit) {
  const auto& source = *std::ranges::max_element(sites, {}, newest_of);
  if (newest_of(source) < 0) {
    return "no site has a checkpoint to resume from: start all sites without --resume, or with "
           "--resume=auto";
  }
  std::vector<std::string> parts, lacking;
  for (const auto& site : sites) {
    parts.push_back(fmt::format("{} has [{}]", site.site, fmt::join(site.resumable_syncs, ", ")));
    if (std::ranges::count(site.resumable_syncs, newest_of(source)) == 0) {
      lacking.push_back(site.site);
    }
  }
  return fmt::format(
      "there is no number of {} done that all sites have a checkpoint of: {}; copy the folder "
      "checkpoints of site {} into the output folder of {}, then start all sites with --resume "
      "again",
      unit, fmt::join(parts, ", "), source.site, fmt::join(lacking, " and of "));
}

}  // namespace farstep::wan
