// With keys a site has one port for everything, and for a site that hosts the coordinator it is the
// coordinator's. All rules of who listens where and who dials whom follow from that.
#include "trainer/peers/secure_port.h"

#include <spdlog/spdlog.h>

#include "trainer/base/error.h"
#include "wan/sockets/local_address.h"

namespace farstep {

namespace {

constexpr const char* kControlService = "control";
constexpr const char* kEndpointField = "coordinator.endpoint";

wan::HostPort place_of(const std::string& endpoint) {
  return wan::parse_endpoint(kEndpointField, endpoint);
}

void warn_of_plain_links(const SiteConfig& site) {
  const auto ip = wan::resolve_address(site.network.address, site.network.interface);
  if (wan::SocketAddress(ip, 0).is_loopback()) return;
  spdlog::warn(
      "network.keys is not set: all traffic is plain TCP, and whoever reaches the ports can take "
      "part or read the model. That is for private networks only; `farstep keys` makes keys");
}

// The address that the peers connect to; nullopt if they cannot.
std::optional<std::string> reached_ip(const NetworkConfig& network) {
  if (network.address.empty() && network.interface.empty()) return std::nullopt;
  // Behind a router it is not an address of this machine.
  if (!network.listen.empty() && network.interface.empty()) {
    return wan::forwarded_address(network.address);
  }
  return wan::resolve_address(network.address, network.interface);
}

// A site that hosts the coordinator has its endpoint's port, so that there is one.
std::vector<wan::SocketAddress> listening_addresses_of(const SiteConfig& site,
                                                       const std::optional<std::string>& reached) {
  constexpr const char* kListenField = "network.listen";
  const auto& network = site.network;
  const auto port = static_cast<int>(network.port);
  const auto listen_at = [&](int at) {
    return wan::listening_addresses(
        kListenField, {.host = wan::parse_host(kListenField, network.listen), .port = at});
  };
  if (const auto hosted = site.hosted_coordinator()) {
    const auto endpoint = place_of(site.coordinators()[*hosted].endpoint);
    if (port != 0 && port != endpoint.port) {
      throw ConfigError(fmt::format(
          "network.port: is {}, and coordinator.endpoint has the port {}: with network.keys a site "
          "has one port; leave network.port out",
          port, endpoint.port));
    }
    if (network.listen.empty()) return wan::listening_addresses(kEndpointField, endpoint);
    return listen_at(endpoint.port);
  }
  if (!network.listen.empty()) return listen_at(port);
  return {wan::SocketAddress(reached.value_or("127.0.0.1"), port)};
}

void require_own_keys(const SiteConfig& site) {
  const auto& folder = site.network.keys;
  const auto named = wan::Credentials::from_folder(folder).identity().site;
  if (named == site.name) return;
  throw ConfigError(
      fmt::format("network.keys: {} has the keys of site {}, and this is site {}: "
                  "name the folder of its own keys",
                  folder, named, site.name));
}

}  // namespace

std::vector<wan::SocketAddress> proven_secure_addresses(const SiteConfig& site) {
  require_own_keys(site);
  const auto addresses = listening_addresses_of(site, reached_ip(site.network));
  const auto hosted = site.hosted_coordinator();
  wan::listen_at_all(
      hosted ? "coordinator.endpoint " + site.coordinators()[*hosted].endpoint : "network.port",
      addresses, /*backlog=*/1);
  return addresses;
}

std::unique_ptr<SecurePort> SecurePort::open(const SiteConfig& site, const Clock& clock) {
  if (site.network.keys.empty()) {
    warn_of_plain_links(site);
    return nullptr;
  }
  require_own_keys(site);
  const auto reached = reached_ip(site.network);
  return std::make_unique<SecurePort>(site.network.keys, listening_addresses_of(site, reached),
                                      reached, clock);
}

SecurePort::SecurePort(const std::filesystem::path& keys,
                       const std::vector<wan::SocketAddress>& addresses,
                       const std::optional<std::string>& reached_ip, const Clock& clock)
    : gateway_(addresses, wan::Credentials::from_folder(keys), clock) {
  if (reached_ip) reached_at_.emplace(*reached_ip, gateway_.port());
}

void SecurePort::offer_coordinator(const std::string& endpoint) {
  const auto [host, port] = place_of(endpoint);
  offer_ = gateway_.offer_to_all(kControlService, wan::SocketAddress(host, port));
}

wan::CoordinatorVisitors SecurePort::visitors(const std::string& own) {
  return {.site_at = [this, own](const std::string& ip) -> std::optional<std::string> {
            if (ip == "127.0.0.1" && !own.empty()) return own;
            return gateway_.visitor(ip);
          },
          .has_closed =
              [this](const std::string& site) {
                return gateway_.is_closed_by_peer(site, wan::kControlLane);
              }};
}

std::string SecurePort::failure(const std::string& site) {
  return gateway_.connect(site, wan::kControlLane, wan::deadline_after(0));
}

std::string SecurePort::way_to_coordinator(const CoordinatorPlace& coordinator) {
  const auto& [endpoint, site] = coordinator;
  gateway_.know_for_lane(site, wan::kControlLane, place_of(endpoint));
  ways_.push_back(gateway_.way_to(site, wan::kControlLane, kControlService, "127.0.0.1"));
  return ways_.back().address.place().endpoint();
}

}  // namespace farstep
