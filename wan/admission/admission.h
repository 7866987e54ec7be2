// The rules for starting a run together. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "wan/protocol/protocol.h"

namespace farstep::wan {

// Returns why the site's own copy of the run differs from the coordinator's, with the JSON path of
// the first difference. Returns nullopt if they are equal or the site brought no copy.
std::optional<std::string> objection_to_run(const RegisterMessage& newcomer, const Json& run);

// Returns which fact of a site differs from that of one that registered before; nullopt if none.
std::optional<std::string> objection_to_facts(const RegisterMessage& newcomer,
                                              const RegisterMessage& registered);

// Returns why a site cannot have the states that it offers; nullopt if it can.
std::optional<std::string> objection_to_states(const RegisterMessage& newcomer);

// Returns why the sites cannot begin together: one of them always resumes and the other never.
// Returns nullopt if they can.
std::optional<std::string> objection_to_resume(const RegisterMessage& newcomer,
                                               const RegisterMessage& registered);

}  // namespace farstep::wan
