// Errors about an address come before training starts, and show what the machine has instead.
#include "wan/sockets/local_address.h"

#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include "trainer/base/error.h"
#include "wan/sockets/host_addresses.h"

namespace farstep::wan {

namespace {

constexpr const char* kAddressField = "network.address";

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
      const SocketAddress address(storage);
      if (!address.is_link_local()) found.push_back({entry->ifa_name, address});
    }
  }
  return found;
}

// For messages: a wrong address is mended by choosing another from this list.
std::string own_addresses() {
  std::vector<std::string> texts;
  for (const auto& entry : interface_addresses()) {
    texts.push_back(fmt::format("{} ({})", entry.address.ip(), entry.interface));
  }
  return texts.empty() ? "this machine has no addresses"
                       : fmt::format("this machine has {}", fmt::join(texts, ", "));
}

// The number of the system's error; 0 if one could listen there. Listening is the proof: 127.0.0.2
// is an address of this machine, but no interface lists it.
int error_of_listening(const SocketAddress& address) {
  try {
    listen_tcp(address);
    return 0;
  } catch (const TcpError& error) {
    return error.error();
  }
}

// Below this port only root may listen.
int first_free_for_all() {
  int port = 1024;
  std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> port;
  return port;
}

// Throws ConfigError unless the host can be an address for other machines.
void require_for_others(const std::string& host) {
  if (is_any_host(host)) {
    throw ConfigError(
        fmt::format("{}: {} stands for any address; name the one that the peers can reach; {}",
                    kAddressField, host, own_addresses()));
  }
  if (const auto ip = usual_ip(host); ip && SocketAddress(*ip, 0).is_link_local()) {
    throw ConfigError(fmt::format(
        "{}: {} is link-local: it means something else at every machine; give this machine an "
        "address for that network, such as fd00::5, and name that; {}",
        kAddressField, host, own_addresses()));
  }
}

// The addresses of the host that could be announced; there is at least one.
std::vector<SocketAddress> for_others(const std::string& text) {
  const auto host = parse_host(kAddressField, text);
  require_for_others(host);
  auto addresses = look_up(kAddressField, {.host = host, .port = 0});
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const auto& address) { return !address.is_loopback(); });
  return addresses;
}

}  // namespace

std::string resolve_address(const std::string& address, const std::string& interface) {
  FARSTEP_CHECK(address.empty() != interface.empty(), "need an address or an interface");
  if (!interface.empty()) {
    for (const auto& entry : interface_addresses()) {
      if (entry.interface == interface) return entry.address.ip();
    }
    const auto text = fmt::format("network.interface: no interface {} with an IP address here; {}",
                                  interface, own_addresses());
    // One that exists may get its address later.
    if (if_nametoindex(interface.c_str()) != 0) throw PeerError("", text);
    throw ConfigError(text);
  }
  const auto addresses = for_others(address);
  const auto own =
      std::ranges::find_if(addresses, [](const auto& one) { return error_of_listening(one) == 0; });
  if (own != addresses.end()) return own->ip();
  const auto& first = addresses.front();
  throw_cannot_listen(usual_ip(address) ? std::string(kAddressField)
                                        : fmt::format("{}: {} is {}, and this site", kAddressField,
                                                      address, text_of(addresses)),
                      first, error_of_listening(first));
}

std::string forwarded_address(const std::string& address) {
  return for_others(address).front().ip();
}

// Where the kernel has no IPv6, a socket of that family cannot be made.
std::vector<SocketAddress> listening_addresses(const std::string& field, const HostPort& place) {
  if (place.host == kAnyHost || place.host == "::") {
    const SocketAddress both("::", place.port);
    const int error = error_of_listening(both.with_port(0));
    const bool has_ip6 = error != EAFNOSUPPORT && error != EADDRNOTAVAIL;
    return {has_ip6 ? both : SocketAddress("0.0.0.0", place.port)};
  }
  const auto addresses = look_up(field, place);
  if (usual_ip(place.host)) return addresses;
  std::vector<SocketAddress> own;
  std::ranges::copy_if(addresses, std::back_inserter(own), is_own_address);
  if (own.empty()) {
    throw PeerError(
        "", fmt::format("{}: {} is {}, and that is no address of this machine, which could listen "
                        "there; {}. Behind a router that forwards the port, with keys, set "
                        "network.listen to one of them",
                        field, place.host, text_of(addresses), own_addresses()));
  }
  return own;
}

std::string loopback_warning(const std::string& host, const std::vector<SocketAddress>& addresses) {
  const bool says_so = usual_ip(host) || host == "localhost" || host.ends_with(".localhost");
  if (says_so || !std::ranges::all_of(addresses, &SocketAddress::is_loopback)) return "";
  return fmt::format(
      "{} is {} here, which no other machine can reach: write an IP address instead, or give the "
      "name one in this machine's /etc/hosts; {}",
      host, text_of(addresses), own_addresses());
}

bool is_temporary_for_listening(int error) {
  return error == EADDRINUSE || error == EADDRNOTAVAIL;
}

std::string listening_failure(const SocketAddress& address, int error) {
  auto text = fmt::format("cannot listen on {} ({})", address.text(),
                          std::system_category().message(error));
  switch (error) {
    case EADDRINUSE:
      return text +
             ": another process has that port: choose another port, or end the process, which `ss "
             "-ltnp` names";
    case EADDRNOTAVAIL:
      return fmt::format(
          "{}: that is no address of this machine now; {}. Behind a router that forwards the port, "
          "with keys, set network.listen to one of them",
          text, own_addresses());
    case EACCES:
      return fmt::format("{}: ports below {} are for root: choose another port", text,
                         first_free_for_all());
    case EAFNOSUPPORT:
      return fmt::format("{}: this machine has no {}; {}", text,
                         address.family() == AF_INET6 ? "IPv6" : "IPv4", own_addresses());
    default:
      return text;
  }
}

void throw_cannot_listen(const std::string& who, const SocketAddress& address, int error) {
  const auto text = fmt::format("{}: {}", who, listening_failure(address, error));
  if (is_temporary_for_listening(error)) throw PeerError("", text);
  throw ConfigError(text);
}

std::vector<Socket> listen_at_all(const std::string& who,
                                  const std::vector<SocketAddress>& addresses, int backlog) {
  FARSTEP_CHECK(!addresses.empty(), "nowhere to listen");
  std::vector<Socket> listeners;
  for (const auto& address : addresses) {
    const auto at =
        listeners.empty()
            ? address
            : address.with_port(SocketAddress::local_of(listeners.front().fd()).value().port());
    try {
      listeners.push_back(listen_tcp(at, backlog));
    } catch (const TcpError& error) {
      throw_cannot_listen(who, at, error.error());
    }
  }
  return listeners;
}

bool is_own_address(const SocketAddress& address) {
  return error_of_listening(address.with_port(0)) == 0;
}

SocketAddress shown_address(const SocketAddress& address) {
  if (!is_any_host(address.ip())) return address;
  for (const auto& entry : interface_addresses()) {
    if (!entry.address.is_loopback()) return entry.address.with_port(address.port());
  }
  return address;
}

std::string endpoint_here(const std::string& endpoint) {
  auto place = parse_endpoint("endpoint", endpoint);
  if (is_any_host(place.host)) place.host = "127.0.0.1";
  return place.endpoint();
}

}  // namespace farstep::wan
