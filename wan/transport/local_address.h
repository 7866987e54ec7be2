// Which IP address of this machine the data path uses.
#pragma once

#include <string>

namespace farstep {

// The address for network.address or network.interface, one of which is empty: the first is checked
// to be this machine's, the second is looked up (IPv4 before IPv6; no link-local ones). Throws
// ConfigError that lists the machine's interfaces and addresses.
std::string resolve_address(const std::string& address, const std::string& interface);

}  // namespace farstep
