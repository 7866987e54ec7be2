// What the sites without data must know of the master's (strategy.scatter). The master tells it
// through the store; what it means is between the model family's two ends.
#pragma once

#include <string>

#include "trainer/config/json_fields.h"
#include "wan/transport/store.h"

namespace farstep {

// Tells the other sites. Throws PeerError as `store` does.
void tell_data_facts(const Json& facts, wan::Store& store);

// Waits for what `master` tells, and returns it. Throws PeerError as `store` does, or if it is not
// JSON.
Json told_data_facts(const std::string& master, wan::Store& store);

}  // namespace farstep
