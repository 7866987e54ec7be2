// A data path between threads of one process: for tests, and as the base of emulated links.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wan/transport/transport.h"

namespace farstep {

// One connected transport a site, in order of rank. A transfer whose other side does not turn up
// within `stall_seconds` of its wait() fails. A message is copied once, when both sides are there;
// sides that differ in size throw InternalError.
std::vector<std::unique_ptr<Transport>> connect_in_memory(const std::vector<std::string>& sites,
                                                          double stall_seconds);

}  // namespace farstep
