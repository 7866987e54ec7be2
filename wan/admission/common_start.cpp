// Sites of one run may come back with different states: a power cut meets them between the writes
// of two checkpoints, a disk is new, or the others went on without one of them. A member's own
// optimizer state goes on only from its own checkpoint. So the vote prefers the state of many to
// the newest of one.
#include "wan/admission/common_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace farstep::wan {

namespace {

struct Candidate {
  OfferedState state;
  std::vector<std::string> holders;

  bool is_held_by(const std::string& site) const {
    return std::ranges::find(holders, site) != holders.end();
  }
  int64_t num_members_with_it() const {
    return std::ranges::count_if(state.members,
                                 [this](const auto& site) { return is_held_by(site); });
  }
  // A checkpoint of an older version does not say who took part: then all that are there did.
  bool has_majority(int64_t num_there) const {
    return state.members.empty() ? 2 * std::ssize(holders) > num_there
                                 : 2 * num_members_with_it() > std::ssize(state.members);
  }
};

// Newest first; of those after as many syncs, that of most sites.
std::vector<Candidate> candidates_of(const std::vector<RegisterMessage>& sites) {
  std::map<std::pair<int64_t, std::string>, Candidate> by_state;
  for (const auto& site : sites) {
    for (const auto& state : site.states) {
      auto& candidate = by_state[{state.syncs, state.theta_hash}];
      if (candidate.is_held_by(site.site)) continue;
      if (candidate.holders.empty()) candidate.state = state;
      candidate.holders.push_back(site.site);
    }
  }
  std::vector<Candidate> candidates;
  for (auto& [key, candidate] : by_state) candidates.push_back(std::move(candidate));
  std::ranges::stable_sort(candidates, std::ranges::greater(), [](const auto& candidate) {
    return std::pair(candidate.state.syncs, candidate.holders.size());
  });
  return candidates;
}

bool can_begin_anew(const std::vector<RegisterMessage>& sites) {
  const auto has_none = [](const auto& site) { return site.states.empty(); };
  const auto has_no_sync = [](const auto& site) {
    return std::ranges::all_of(site.states, [](const auto& state) { return state.syncs == 0; });
  };
  return !std::ranges::all_of(sites, has_none) && std::ranges::all_of(sites, has_no_sync);
}

const Candidate& best_of(const std::vector<Candidate>& candidates, int64_t num_there,
                         int64_t least_sites) {
  auto best = std::ranges::find_if(
      candidates, [&](const auto& candidate) { return candidate.has_majority(num_there); });
  if (best == candidates.end()) {
    best = std::ranges::find_if(candidates, [&](const auto& candidate) {
      return std::ssize(candidate.holders) >= least_sites;
    });
  }
  return best == candidates.end() ? candidates.front() : *best;
}

std::string name_of(const OfferedState& state, std::string_view unit) {
  return fmt::format("after {} {}", state.syncs, unit);
}

// States after fewer syncs are older ones of the same sites. They say nothing.
std::string left_text(const Candidate& best, const std::vector<Candidate>& candidates,
                      std::string_view unit) {
  std::vector<std::string> left;
  for (const auto& candidate : candidates) {
    const bool is_best = &candidate == &best;
    if (is_best || candidate.state.syncs < best.state.syncs) continue;
    const bool is_same_age = candidate.state.syncs == best.state.syncs;
    left.push_back(fmt::format("{}{} of site {}", name_of(candidate.state, unit),
                               is_same_age ? ", with other weights," : "",
                               fmt::join(candidate.holders, ", ")));
  }
  if (left.empty()) return "";
  return fmt::format("the run begins with the state {} of site {}, and leaves that {}",
                     name_of(best.state, unit), fmt::join(best.holders, ", "),
                     fmt::join(left, ", that "));
}

}  // namespace

std::optional<CommonStart> common_start_of(const std::vector<RegisterMessage>& sites,
                                           int64_t least_sites, std::string_view unit) {
  const bool resumes = std::ranges::count(sites, Resume::kAlways, &RegisterMessage::resume) > 0;
  // A site may be lost before its first checkpoint, while the others save theirs in mid-round.
  // Nobody loses anything but local steps if all begin anew.
  if (!resumes || can_begin_anew(sites)) {
    CommonStart start;
    for (const auto& site : sites) start.members.push_back(site.site);
    return start;
  }
  const auto candidates = candidates_of(sites);
  if (candidates.empty()) return std::nullopt;
  const auto& best = best_of(candidates, std::ssize(sites), least_sites);
  const bool is_whole =
      !best.state.members.empty() && best.num_members_with_it() == std::ssize(best.state.members);
  return CommonStart{.state = best.state,
                     .members = best.holders,
                     .has_majority = best.has_majority(std::ssize(sites)),
                     .is_newest_of_all = is_whole && &best == &candidates.front(),
                     .left = left_text(best, candidates, unit)};
}

}  // namespace farstep::wan
