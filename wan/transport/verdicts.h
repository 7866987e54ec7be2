// What all sites found about the network, so that all of them go on or all of them end.
#pragma once

#include <string>

#include "wan/transport/store.h"

namespace farstep {

// Publishes what this site found wrong, empty if nothing, under keys that begin with `prefix`, and
// waits for all other sites. Throws ConfigError with the findings of all, if there is one.
void share_verdicts(Store& store, const std::string& prefix, int self, int size,
                    const std::string& own);

}  // namespace farstep
