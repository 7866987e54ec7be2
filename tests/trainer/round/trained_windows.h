// What must hold of the windows that the fake sites of a run have trained on.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"

namespace farstep {

// The last rounds to which lost sites have brought work, by site.
using LastRounds = std::map<std::size_t, int64_t>;

// Returns the sequences of all steps whose work is merged, ascending.
inline std::vector<int64_t> merged_sequences(const FakeSites& sites, const LastRounds& lost) {
  std::vector<int64_t> merged;
  const auto add = [&](const std::vector<TrainedStep>& steps, int64_t last_round) {
    for (const auto& step : steps) {
      if (step.round > last_round) continue;
      merged.insert(merged.end(), step.sequences.begin(), step.sequences.end());
    }
  };
  for (std::size_t site = 0; site < sites.sites.size(); ++site) {
    const auto former = sites.former_steps.find(site);
    const bool has_come_back = former != sites.former_steps.end();
    const auto& run = sites.sites[site]->run;
    const auto& steps = sites.sites[site]->training.steps;
    if (has_come_back) add(former->second, lost.at(site));
    add(steps, lost.contains(site) && !has_come_back ? lost.at(site) : run.position.rounds_done);
  }
  std::ranges::sort(merged);
  return merged;
}

// Returns the windows as each site knows them that has ended the run.
inline std::vector<RunWindows> windows_at_end(const FakeSites& sites) {
  std::vector<RunWindows> windows;
  for (const auto& site : sites.sites) {
    const auto& run = site->run;
    if (run.position.rounds_done == run.config.outer.rounds)
      windows.push_back(run.position.windows);
  }
  return windows;
}

// Returns whether all sites have the same pool at the end of a run. Also, every sequence must be
// in the pool, or one site whose work is merged has trained on it once.
inline bool are_windows_whole(const FakeSites& sites, const LastRounds& lost = {}) {
  const auto known = windows_at_end(sites);
  if (std::ranges::adjacent_find(known, std::not_equal_to()) != known.end()) return false;
  const auto& pool = known.at(0).pool();
  auto all = merged_sequences(sites, lost);
  for (const auto& range : pool.returned()) {
    for (int64_t sequence = range.begin; sequence < range.end; ++sequence) all.push_back(sequence);
  }
  std::ranges::sort(all);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k] != static_cast<int64_t>(k)) return false;
  }
  return pool.next() == std::ssize(all) && known.at(0).state().reserved_sequences.empty();
}

}  // namespace farstep
