// A run as its coordinator knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/json_fields.h"

namespace farstep {

struct ServedRun {
  Json config;  // the run file, every default written out; sites get it as it is
  std::vector<std::string>
      sites;              // names of the sites that are expected, in the order of their ids
  int64_t fragments = 1;  // of the first round
  // With fewer sites the run pauses. nullopt: all of them.
  std::optional<int64_t> min_sites = std::nullopt;
};

}  // namespace farstep
