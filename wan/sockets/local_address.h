// Finds the IP address of this machine that the data path uses.
#pragma once

#include <string>

namespace farstep::wan {

// Returns the address for network.address or network.interface; one of the two is empty. Checks
// that an address belongs to this machine. Looks an interface up: IPv4 before IPv6, no link-local
// addresses. Names that the system can resolve are addresses too. Throws a ConfigError that lists
// the machine's interfaces and addresses. Throws a PeerError where waiting may help: the machine
// does not have the address, or the interface has none, yet.
std::string resolve_address(const std::string& address, const std::string& interface);

// Returns the IP address of a host that is given by name or by address. Throws ConfigError with the
// JSON path `field` if there is no such host, and PeerError if the name service does not answer.
std::string ip_of_host(const std::string& field, const std::string& host);

// Returns HOST and PORT of an endpoint "tcp://HOST:PORT"; an IPv6 address without its brackets, "*"
// as 0.0.0.0, and 0 for the port "*". Throws ConfigError with the path `field` for another text.
struct HostAndPort {
  std::string host;
  int port = 0;
};
HostAndPort parse_endpoint(const std::string& field, const std::string& endpoint);

// Whether this machine has the IP address.
bool is_own_address(const std::string& ip);

}  // namespace farstep::wan
