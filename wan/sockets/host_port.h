// A host with a port, as configs, options and messages have it: the only place that takes such
// texts apart or puts them together.
//
// A host is an IP address or a name, in ASCII. An IPv6 address before a port stands in brackets
// (RFC 3986, section 3.2.2). A link-local one names its interface: fe80::1%eth0 (RFC 4007, section
// 11). Nothing is looked up here.
//
// Values and pure functions; thread-safe. Those with a `field` throw ConfigError: the message
// begins with it, quotes the text, and says what to write instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace farstep::wan {

// Stands for all addresses of a machine, in place of a host to listen at.
inline constexpr std::string_view kAnyHost = "*";

struct HostPort {
  // Without brackets. An IP address is in its usual form, an IPv4 address within IPv6 as IPv4.
  std::string host;
  int port = 0;

  // Returns "10.0.0.1:7400", "[::1]:7400".
  std::string text() const;
  // Returns "tcp://10.0.0.1:7400".
  std::string endpoint() const;
  bool operator==(const HostPort&) const = default;
};

// Returns the usual form of an IP address, with its interface if it has one; nullopt for any other
// text. Two texts of one address have the same.
std::optional<std::string> usual_ip(std::string_view text);

// Whether the host stands for all addresses of a machine: "*", "::" or "0.0.0.0".
bool is_any_host(std::string_view host);

// Reads a host alone; brackets may be around an IPv6 address.
std::string parse_host(const std::string& field, std::string_view text);

// Reads HOST or HOST:PORT. `port` is nullopt if none is given. An IPv6 address without brackets
// that could end in a port is refused.
struct HostMaybePort {
  std::string host;
  std::optional<int> port;
};
HostMaybePort parse_host_maybe_port(const std::string& field, std::string_view text);

// Reads HOST:PORT, with a port from 0 to 65535. The host may be "*".
HostPort parse_host_port(const std::string& field, std::string_view text);

// Reads tcp://HOST:PORT, as parse_host_port(); the port "*" is 0.
HostPort parse_endpoint(const std::string& field, std::string_view text);

}  // namespace farstep::wan
