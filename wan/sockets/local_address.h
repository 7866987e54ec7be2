// The IP addresses of this machine: which of them the data path uses, and where a port can be
// opened.
//
// A failure that time may mend is a PeerError, another one is the config's: a ConfigError. Messages
// list the machine's interfaces and addresses where one of them is the remedy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wan/sockets/tcp.h"

namespace farstep::wan {

// Returns the address for network.address or network.interface, which is announced to the peers;
// one of the two is empty. Checks that an address belongs to this machine, and can be one for
// others. Of a name it takes the first such address that is not loopback, or else the first. Looks
// an interface up: IPv4 before IPv6, no link-local addresses. Throws ConfigError; throws PeerError
// if the machine does not have the address, or the interface has none, yet.
std::string resolve_address(const std::string& address, const std::string& interface);

// Returns the address that a router forwards to this machine, for network.address: it need not be
// this machine's. Throws ConfigError if it can be no address for others, and UnknownHostError.
std::string forwarded_address(const std::string& address);

// Returns where to listen for a host of a config: at an IP address itself, or of a name at all of
// its addresses that this machine has. "*" and "::" stand for all addresses of both families, or of
// IPv4 alone where the machine has no IPv6. Throws UnknownHostError, and PeerError if none is this
// machine's.
std::vector<SocketAddress> listening_addresses(const std::string& field, const HostPort& place);

// Returns why a name is of no use in the config of a machine, though it has addresses: all of them
// are loopback, as Debian's /etc/hosts has it for a machine's own name. Empty if it is of use, and
// for localhost and IP addresses, which say what they are.
std::string loopback_warning(const std::string& host, const std::vector<SocketAddress>& addresses);

// Whether one could listen a little later, with nothing changed in the config: the port is in use,
// or this machine does not have the address yet. `error` is a number of the system's.
bool is_temporary_for_listening(int error);

// Returns "cannot listen on 10.0.0.1:7400 (Address already in use): ", and what to do.
std::string listening_failure(const SocketAddress& address, int error);

// Throws listening_failure() with `who` in front: a PeerError if it is temporary, else a
// ConfigError.
[[noreturn]] void throw_cannot_listen(const std::string& who, const SocketAddress& address,
                                      int error);

// Returns a socket that listens on each of the addresses, all at one port: that of the first, or a
// free one if that is 0. Throws as throw_cannot_listen().
std::vector<Socket> listen_at_all(const std::string& who,
                                  const std::vector<SocketAddress>& addresses, int backlog);

// Whether this machine has the IP address.
bool is_own_address(const SocketAddress& address);

// Returns an address by which others may reach a port that is open at all addresses of the machine:
// the first that is not loopback, or else the given one.
SocketAddress shown_address(const SocketAddress& address);

// Returns where this machine itself reaches what listens at an endpoint: for all addresses of a
// machine, of both families or of IPv4, the loopback of IPv4, which is there without IPv6 too.
std::string endpoint_here(const std::string& endpoint);

}  // namespace farstep::wan
