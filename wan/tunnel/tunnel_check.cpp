// The check of the network with keys: each site says where it can be reached, all connect, and all
// hear which pairs could not.
#include "wan/tunnel/tunnel_check.h"

#include <charconv>
#include <utility>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// "IP PORT", or "-" for a site that nobody can connect to.
std::string notice_of(const std::optional<SocketAddress>& address) {
  return address ? fmt::format("{} {}", address->ip(), address->port()) : "-";
}

std::optional<SocketAddress> read_notice(const std::string& site, const std::string& text) {
  if (text == "-") return std::nullopt;
  const auto space = text.find(' ');
  int port = 0;
  const char* end = text.data() + text.size();
  if (space != std::string::npos) {
    const auto [rest, error] = std::from_chars(text.data() + space + 1, end, port);
    if (error == std::errc() && rest == end && port > 0 && port < 65'536) {
      try {
        return SocketAddress(text.substr(0, space), port);
      } catch (const ConfigError&) {
        // Below.
      }
    }
  }
  throw PeerError(site, fmt::format("site {} does not say where it can be reached", site));
}

std::string failure_text(const std::string& own, const std::string& peer,
                         const std::optional<SocketAddress>& here,
                         const std::optional<SocketAddress>& there, const std::string& reason) {
  if (!here && !there) {
    return fmt::format(
        "network.address: {} and {} have none, so neither can connect to the other: give one of "
        "them an address and a port that the other can reach",
        own, peer);
  }
  const auto text = [](const auto& address) {
    return address ? fmt::format("at {}", address->text()) : std::string("cannot be connected to");
  };
  return fmt::format(
      "no secure link between {} ({}) and {} ({}): {}: open the TCP port of one of them, or set "
      "its network.address to one that the other can reach",
      own, text(here), peer, text(there), reason);
}

}  // namespace

NetworkFindings check_tunnels(const MeshOptions& mesh, const std::optional<SocketAddress>& own,
                              Gateway& gateway, Store& store) {
  const auto prefix = fmt::format("tunnel/{}", mesh.generation);
  const auto& name = mesh.sites[mesh.rank];
  // Before it waits for any peer's notice: two sites would otherwise wait for each other.
  store.put(fmt::format("{}/notice/{}", prefix, mesh.rank), notice_of(own));
  std::vector<std::optional<SocketAddress>> addresses(mesh.sites.size());
  for (int peer = 0; peer < mesh.size(); ++peer) {
    if (peer == mesh.rank) continue;
    const auto& site = mesh.sites[peer];
    addresses[peer] = read_notice(site, store.get(fmt::format("{}/notice/{}", prefix, peer)));
    // Of two that can be connected to, the first by name dials.
    if (addresses[peer]) gateway.know(site, *addresses[peer], !own || name < site);
  }
  const auto deadline = deadline_after(mesh.connect_seconds);
  // All tunnels are made before one is waited for: each connects by itself. So a peer that cannot
  // be reached leaves the others their time.
  std::vector<std::shared_ptr<Line>> lines;
  for (int peer = 0; peer < mesh.size(); ++peer) {
    lines.push_back(peer == mesh.rank ? nullptr : gateway.line(mesh.sites[peer], kFirstDataLane));
  }
  std::vector<LinkFault> faults;
  std::vector<PeerLink> found(mesh.sites.size());
  for (int peer = 0; peer < mesh.size(); ++peer) {
    if (peer == mesh.rank) continue;
    const auto reason = gateway.connect(mesh.sites[peer], kFirstDataLane, deadline);
    if (!reason.empty()) {
      faults.push_back(
          {mesh.rank, peer, failure_text(name, mesh.sites[peer], own, addresses[peer], reason)});
      continue;
    }
    found[peer] = {loopback_ip(peer), lines[peer]->facts().rtt_seconds};
  }
  faults = share_faults(store, prefix, mesh, faults);
  if (!faults.empty()) found.clear();
  return {.links = std::move(found), .faults = std::move(faults)};
}

}  // namespace farstep::wan
