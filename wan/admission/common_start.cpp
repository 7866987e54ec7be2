// Sites of one run may come back with different states: a power cut meets them between the writes
// of two checkpoints, a disk is new, or the others went on without one of them. A member's own
// optimizer state goes on only from its own checkpoint. So the vote prefers the state of many to
// the newest of one.
#include "wan/admission/common_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
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
  // A checkpoint of an older version does not say who took part: then all that are there did.
  bool has_majority(int64_t num_there) const {
    if (state.members.empty()) return 2 * std::ssize(holders) > num_there;
    const auto num_holding =
        std::ranges::count_if(state.members, [this](const auto& site) { return is_held_by(site); });
    return 2 * num_holding > std::ssize(state.members);
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

// By default all sites are needed. Then a state that all have comes before a newer one of most.
const Candidate* best_of(const std::vector<Candidate>& candidates, int64_t num_there,
                         const ServedRun& run) {
  using Test = std::function<bool(const Candidate&)>;
  const Test have_all = [&](const Candidate& candidate) {
    return std::ssize(candidate.holders) == num_there;
  };
  const Test is_enough = [&](const Candidate& candidate) {
    return std::ssize(candidate.holders) >= run.least_sites();
  };
  const Test has_majority = [&](const Candidate& candidate) {
    return candidate.has_majority(num_there);
  };
  const Test is_both = [&](const Candidate& candidate) {
    return is_enough(candidate) && has_majority(candidate);
  };
  const Test is_any = [](const Candidate&) { return true; };
  const auto tests = run.takes_newcomers ? std::vector{is_both, has_majority, is_enough, is_any}
                                         : std::vector{have_all};
  for (const auto& test : tests) {
    const auto found = std::ranges::find_if(candidates, test);
    if (found != candidates.end()) return &*found;
  }
  return nullptr;
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
                                           const ServedRun& run) {
  const bool resumes = std::ranges::count(sites, Resume::kAlways, &RegisterMessage::resume) > 0;
  // A site may be lost before its first checkpoint, while the others save theirs in mid-round.
  // Nobody loses anything but local steps if all begin anew.
  if (!resumes || can_begin_anew(sites)) {
    CommonStart start;
    for (const auto& site : sites) start.members.push_back(site.site);
    return start;
  }
  const auto candidates = candidates_of(sites);
  const auto* best = best_of(candidates, std::ssize(sites), run);
  if (best == nullptr) return std::nullopt;
  const auto& newest_members = candidates.front().state.members;
  const auto is_there = [&](const std::string& name) {
    return std::ranges::find(sites, name, &RegisterMessage::site) != sites.end();
  };
  return CommonStart{
      .state = best->state,
      .members = best->holders,
      .has_majority = best->has_majority(std::ssize(sites)),
      .has_newest_members =
          !newest_members.empty() && std::ranges::all_of(newest_members, is_there),
      .left = left_text(*best, candidates, run.fragments == 1 ? "rounds" : "fragments' syncs")};
}

std::string no_common_start_text(const std::vector<RegisterMessage>& sites) {
  const auto candidates = candidates_of(sites);
  if (candidates.empty()) {
    return "no site has a checkpoint to resume from: start all sites without --resume, or with "
           "--resume=auto";
  }
  const auto& newest = candidates.front();
  std::vector<std::string> parts, lacking;
  for (const auto& site : sites) {
    std::vector<int64_t> syncs;
    for (const auto& state : site.states) syncs.push_back(state.syncs);
    parts.push_back(fmt::format("{} has those after {} syncs", site.site,
                                syncs.empty() ? "no" : fmt::format("{}", fmt::join(syncs, ", "))));
    if (!newest.is_held_by(site.site)) lacking.push_back(site.site);
  }
  return fmt::format(
      "the sites have no checkpoint in common, and this run takes in no site that has none: {}; "
      "copy "
      "the folder checkpoints of site {} into the output folder of {}, then start all sites with "
      "--resume again",
      fmt::join(parts, ", "), newest.holders.front(), fmt::join(lacking, " and of "));
}

}  // namespace farstep::wan
