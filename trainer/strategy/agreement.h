// A sync in which nothing is exchanged: the sites meet, tell each other what they did, and prove
// that they hold the same values.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "wan/protocol/rendezvous.h"

namespace farstep {

// Arrives with `hash_before` and votes for `hash_after`, once more in each new generation. Returns
// the answer to the arrival: the sync counts then. Returns nullopt if a stop was requested before.
// Calls `check` when all have arrived, and throws its exceptions, as well as those of Rendezvous.
std::optional<wan::Go> agree(wan::Rendezvous& rendezvous, const wan::SyncId& sync,
                             const wan::Contribution& contribution, const std::string& hash_before,
                             const std::string& hash_after,
                             const std::function<void(const wan::Go&)>& check,
                             const std::stop_token& stop);

}  // namespace farstep
