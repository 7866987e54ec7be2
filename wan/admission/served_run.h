// A run as its coordinator knows it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/json_fields.h"
#include "wan/protocol/coordinator_messages.h"

namespace farstep::wan {

inline constexpr int64_t kMostCoordinators = 16;  // of one run

// Returns whether a site may have this name: it becomes a folder, and part of keys.
bool is_site_name(std::string_view name);

// Returns those of the members, with these contributions, whose deltas are out of proportion. It
// depends on both alone: a coordinator that goes on with the journal asks again.
using DeltaJudge = std::function<std::vector<Outlier>(std::span<const std::string> sites,
                                                      std::span<const Contribution>)>;
inline std::vector<Outlier> judge_nothing(std::span<const std::string> /*sites*/,
                                          std::span<const Contribution> /*contributions*/) {
  return {};
}

struct ServedRun {
  Json config;  // the run file, every default written out; sites get it as it is
  // Names of the sites for which the run waits when it begins, in their order.
  std::vector<std::string> sites;
  int64_t fragments = 1;  // of the first round
  // With fewer sites the run does not begin, and pauses later. nullopt: all of `sites`.
  std::optional<int64_t> min_sites = std::nullopt;
  // How many may be there at once. More than `sites` has: they may have any name.
  std::optional<int64_t> max_sites = std::nullopt;
  // Whether a site may come to the run when it has begun, and take the others' state.
  bool takes_newcomers = true;
  DeltaJudge judge = judge_nothing;
  // The site in the coordinator's process; nullopt: there is none.
  std::optional<std::string> host = std::nullopt;
  // Which of the run's coordinators serves it, from 0, if it has stand-bys; nullopt: it is alone.
  std::optional<int64_t> place = std::nullopt;

  // Returns this coordinator's lowest term above `term`. No other one of the run has the same.
  int64_t term_after(int64_t term) const;
  // Whether sites that it does not name may join.
  bool is_open() const { return max_sites.value_or(0) > std::ssize(sites); }
  bool names(const std::string& site) const;
  int64_t least_sites() const { return min_sites.value_or(std::ssize(sites)); }
  int64_t most_sites() const { return max_sites.value_or(std::ssize(sites)); }
};

}  // namespace farstep::wan
