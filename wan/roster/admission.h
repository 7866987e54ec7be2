// The rules for starting a run together. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wan/protocol/protocol.h"

namespace farstep::wan {

// Returns why the site's own copy of the run differs from the coordinator's, with the JSON path of
// the first difference. Returns nullopt if they are equal or the site brought no copy.
std::optional<std::string> objection_to_run(const RegisterMessage& newcomer, const Json& run);

// Returns which fact of a site differs from that of one that registered before; nullopt if none.
std::optional<std::string> objection_to_facts(const RegisterMessage& newcomer,
                                              const RegisterMessage& registered);

// Returns why a site cannot have the checkpoints that it offers; nullopt if it can.
std::optional<std::string> objection_to_checkpoints(const RegisterMessage& newcomer);

// Returns why the sites cannot begin together: one of them always resumes and the other never.
// Returns nullopt if they can.
std::optional<std::string> objection_to_resume(const RegisterMessage& newcomer,
                                               const RegisterMessage& registered);

// Returns the number of completed syncs at which sites that fit each other start. If one of them
// always resumes, it is the highest number that all can resume from, otherwise 0. A site without
// any checkpoint begins anew beside sites that have done no sync. Returns nullopt if there is no
// such number.
std::optional<int64_t> start_syncs_of(const std::vector<RegisterMessage>& sites);

// Returns why start_syncs_of() found nothing, with what each site has, and what to do. `unit` is
// what the sites count, such as "rounds".
std::string no_common_start_text(const std::vector<RegisterMessage>& sites, std::string_view unit);

}  // namespace farstep::wan
