// The rules by which sites may start a run together. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wan/membership/protocol.h"

namespace farstep {

// Why the site's own copy of the run does not fit the coordinator's, with the JSON path of the
// first difference; nothing if it fits or the site has none.
std::optional<std::string> objection_to_run(const RegisterMessage& newcomer, const Json& run);

// Why a site does not fit another one that has registered before: other facts, or only one of them
// means to resume; nothing if they fit.
std::optional<std::string> objection_to_site(const RegisterMessage& newcomer,
                                             const RegisterMessage& registered);

// The number of syncs done with which sites that fit each other start: 0, or when they resume the
// highest one that all can resume from; nothing if there is none.
std::optional<int64_t> start_syncs_of(const std::vector<RegisterMessage>& sites);

// "a has [2, 3], b has []": what the sites can resume from.
std::string resumable_syncs_text(const std::vector<RegisterMessage>& sites);

}  // namespace farstep
