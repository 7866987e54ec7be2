// A data path between threads of one process, for tests and as the base of emulated links.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wan/transport/transport.h"

namespace farstep {

// Returns one connected transport for each site, in order of ranks. A transfer fails if the other
// side does not appear within `stall_seconds` of its wait(). A message is copied once, when both
// sides are present. Throws InternalError if their sizes differ.
std::vector<std::unique_ptr<wan::Transport>> connect_in_memory(
    const std::vector<std::string>& sites, double stall_seconds);

}  // namespace farstep
