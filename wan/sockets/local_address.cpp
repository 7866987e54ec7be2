// Errors about an address come before training starts, and show what the machine has instead. What
// a later try may mend is a PeerError; the rest is the config's.
#include "wan/sockets/local_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "trainer/base/error.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {

namespace {

struct InterfaceAddress {
  std::string interface;
  SocketAddress address;
};

// Returns the addresses that peers could use. A link-local address means nothing without an
// interface.
std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* list = nullptr;
  FARSTEP_CHECK(getifaddrs(&list) == 0, "getifaddrs: {}", std::system_category().message(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<InterfaceAddress> found;
  // By family, so that IPv4 comes before IPv6 at every interface.
  for (int family : {AF_INET, AF_INET6}) {
    for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      sockaddr_storage storage{};
      std::memcpy(&storage, entry->ifa_addr,
                  family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      if (family == AF_INET6 &&
          IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr))
        continue;
      found.push_back({entry->ifa_name, SocketAddress(storage)});
    }
  }
  return found;
}

// For messages: a wrong address is mended by choosing another from this list.
std::string list_interfaces(const std::vector<InterfaceAddress>& interfaces) {
  std::vector<std::string> texts;
  for (const auto& entry : interfaces) {
    texts.push_back(fmt::format("{} ({})", entry.address.ip(), entry.interface));
  }
  return texts.empty() ? "this machine has no addresses"
                       : fmt::format("this machine has {}", fmt::join(texts, ", "));
}

}  // namespace

std::string resolve_address(const std::string& address, const std::string& interface) {
  FARSTEP_CHECK(address.empty() != interface.empty(), "need an address or an interface");
  const auto interfaces = interface_addresses();
  if (!interface.empty()) {
    for (const auto& entry : interfaces) {
      if (entry.interface == interface) return entry.address.ip();
    }
    const auto text = fmt::format("network.interface: no interface {} with an IP address here; {}",
                                  interface, list_interfaces(interfaces));
    // One that exists may get its address later.
    if (if_nametoindex(interface.c_str()) != 0) throw PeerError("", text);
    throw ConfigError(text);
  }
  const SocketAddress wanted(ip_of_host("network.address", address), 0);
  if (wanted.ip() == "0.0.0.0" || wanted.ip() == "::") {
    throw ConfigError(
        fmt::format("network.address: {} stands for any address; name the one that the peers can "
                    "reach; {}",
                    address, list_interfaces(interfaces)));
  }
  try {
    // Listening is the proof: 127.0.0.2 is an address of this machine, but no interface lists it.
    listen_tcp(wanted);
  } catch (const TcpError& error) {
    throw_cannot_listen(error.error(),
                        fmt::format("network.address: cannot listen on {} ({}); {}", address,
                                    error.what(), list_interfaces(interfaces)));
  }
  return wanted.ip();
}

std::string ip_of_host(const std::string& field, const std::string& host) {
  // Any family: whether the site uses IPv4 or IPv6 is the user's choice of the address.
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, [](addrinfo* entries) {
    if (entries != nullptr) freeaddrinfo(entries);
  });
  if (error == EAI_AGAIN) {
    throw PeerError("", fmt::format("{}: the name service does not answer for {}", field, host));
  }
  if (error != 0) {
    throw ConfigError(fmt::format(
        "{}: \"{}\" is neither an IP address such as 10.0.0.5 or fd00::5 nor a known host ({})",
        field, host, gai_strerror(error)));
  }
  sockaddr_storage storage{};
  std::memcpy(&storage, list->ai_addr, list->ai_addrlen);
  return SocketAddress(storage).ip();
}

HostAndPort parse_endpoint(const std::string& field, const std::string& endpoint) {
  const std::string_view scheme = "tcp://";
  // The last colon: an IPv6 address has others before it.
  const auto colon = endpoint.rfind(':');
  if (endpoint.starts_with(scheme) && colon > scheme.size()) {
    HostAndPort parsed{.host = endpoint.substr(scheme.size(), colon - scheme.size())};
    if (parsed.host.starts_with('[') && parsed.host.ends_with(']')) {
      parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
    }
    if (parsed.host == "*") parsed.host = "0.0.0.0";
    const auto port = endpoint.substr(colon + 1);
    const auto* end = port.data() + port.size();
    const auto [rest, error] = std::from_chars(port.data(), end, parsed.port);
    const bool is_number = error == std::errc() && rest == end;
    if (port == "*" || (is_number && parsed.port >= 0 && parsed.port < 65'536)) return parsed;
  }
  throw ConfigError(fmt::format("{}: {} must be tcp://ADDRESS:PORT", field, endpoint));
}

bool is_own_address(const std::string& ip) {
  try {
    listen_tcp(SocketAddress(ip, 0));
    return true;
  } catch (const TcpError&) {
    return false;
  }
}

}  // namespace farstep::wan
