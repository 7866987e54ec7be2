// Fake sites that die and come back.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/trainer/round/mortal_sites.h"

namespace farstep {

// Runs a site as a process would that is started again: it takes the state and joins. Returns
// whether it has done all rounds.
inline bool come_back(FakeSites& sites, std::size_t site) {
  sites.renew(site);
  auto& run = sites[site].run;
  const auto state = sites.handed.take("s" + std::to_string(site));
  std::ranges::copy(state.global, run.strategy.theta_global().begin());
  std::ranges::copy(state.momentum, run.strategy.outer_momentum().begin());
  take_shared_state(run, state.shared);
  return attend_round(run, state.shared, {}) && run_rounds(run, {});
}

// Runs all sites; one that dies comes back. Returns what became of each.
inline std::vector<std::string> outcomes_with_returns(FakeSites& sites) {
  return wan::run_ranks(static_cast<int>(sites.sites.size()), [&](int rank) -> std::string {
    const auto site = static_cast<std::size_t>(rank);
    const auto outcome = outcome_of([&] { return run_rounds(sites[site].run, {}); });
    return outcome == "died" ? outcome_of([&] { return come_back(sites, site); }) : outcome;
  });
}

}  // namespace farstep
