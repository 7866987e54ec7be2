// Finds the IP address of this machine that the data path uses.
#pragma once

#include <string>

namespace farstep {

// Returns the address for network.address or network.interface; one of the two is empty. Checks
// that an address belongs to this machine. Looks an interface up: IPv4 before IPv6, no link-local
// addresses. Throws a ConfigError that lists the machine's interfaces and addresses.
std::string resolve_address(const std::string& address, const std::string& interface);

}  // namespace farstep
