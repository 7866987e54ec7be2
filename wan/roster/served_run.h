// A run as its coordinator knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/json_fields.h"

namespace farstep {

inline constexpr int64_t kMostCoordinators = 16;  // of one run

struct ServedRun {
  Json config;  // the run file, every default written out; sites get it as it is
  std::vector<std::string>
      sites;              // names of the sites that are expected, in the order of their ids
  int64_t fragments = 1;  // of the first round
  // With fewer sites the run pauses. nullopt: all of them.
  std::optional<int64_t> min_sites = std::nullopt;
  // Which of the run's coordinators serves it, from 0, if it has stand-bys; nullopt: it is alone.
  std::optional<int64_t> place = std::nullopt;

  // Returns this coordinator's lowest term above `term`. No other one of the run has the same.
  int64_t term_after(int64_t term) const;
};

}  // namespace farstep
