// The check of the network with keys: each site says where it can be reached, all connect, and all
// hear which pairs could not.
#include "wan/tunnel/tunnel_check.h"

#include <charconv>
#include <sstream>
#include <utility>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

struct Notice {
  std::optional<SocketAddress> address;  // nullopt: nobody can connect to the site
  Offers kept;
};

// "IP PORT", or "-" without an address; then the connections that the site would keep, if any.
std::string notice_text(const Notice& notice) {
  const auto& address = notice.address;
  const auto where =
      address ? fmt::format("{} {}", address->ip(), address->port()) : std::string("-");
  return notice.kept.empty() ? where : fmt::format("{} {}", where, text_of(notice.kept));
}

std::optional<SocketAddress> read_address(const std::string& ip, const std::string& port_text) {
  int port = 0;
  const char* end = port_text.data() + port_text.size();
  const auto [rest, error] = std::from_chars(port_text.data(), end, port);
  if (error != std::errc() || rest != end || port <= 0 || port >= 65'536) return std::nullopt;
  try {
    return SocketAddress(ip, port);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

Notice read_notice(const std::string& site, const std::string& text, int num_sites) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  try {
    Notice notice;
    std::size_t used = 1;
    if (!words.empty() && words.front() != "-") {
      used = 2;
      if (words.size() >= used) notice.address = read_address(words[0], words[1]);
      if (!notice.address) throw DataError("it has no address");
    }
    if (words.size() == used + 1) notice.kept = read_offers(words.back(), num_sites);
    if (words.empty() || words.size() > used + 1) throw DataError("it has other words");
    return notice;
  } catch (const DataError& error) {
    throw PeerError(
        site, fmt::format("site {} does not say where it can be reached: {}", site, error.what()));
  }
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
  const bool differ = here && there && here->family() != there->family();
  return fmt::format(
      "no secure link between {} ({}) and {} ({}): {}: {}", own, text(here), peer, text(there),
      reason,
      differ
          ? "one announces an IPv4 address and the other an IPv6 address: set network.address of "
            "one to an address of the other's kind, or give one of the machines both kinds"
          : "open the TCP port of one of them, or set its network.address to one that the other "
            "can reach");
}

}  // namespace

NetworkFindings check_tunnels(const MeshOptions& mesh, const std::optional<SocketAddress>& own,
                              Gateway& gateway, Store& store, const Offers& offers) {
  const auto prefix = fmt::format("tunnel/{}", mesh.generation);
  const auto& name = mesh.sites[mesh.rank];
  const auto texts =
      share(store, prefix + "/notice", notice_text({own, offers}), mesh.rank, mesh.size());
  std::vector<std::optional<SocketAddress>> addresses(mesh.sites.size());
  std::vector<Offers> all_offers;
  for (int peer = 0; peer < mesh.size(); ++peer) {
    const auto& site = mesh.sites[peer];
    auto notice = read_notice(site, texts[static_cast<std::size_t>(peer)], mesh.size());
    all_offers.push_back(std::move(notice.kept));
    if (peer == mesh.rank) continue;
    addresses[peer] = notice.address;
    // Of two that can be connected to, the first by name dials.
    if (addresses[peer]) gateway.know(site, addresses[peer]->place(), !own || name < site);
  }
  std::vector<PeerLink> found(mesh.sites.size());
  for (int peer = 0; peer < mesh.size(); ++peer) {
    found[peer].is_kept = peer != mesh.rank && is_kept(all_offers, mesh.rank, peer);
  }
  if (are_all_kept(all_offers)) return {.links = std::move(found), .faults = {}};
  const auto deadline = deadline_after(mesh.connect_seconds);
  // All tunnels are made before one is waited for: each connects by itself. So a peer that cannot
  // be reached leaves the others their time.
  std::vector<std::shared_ptr<Line>> lines;
  for (int peer = 0; peer < mesh.size(); ++peer) {
    const bool is_new = peer != mesh.rank && !found[peer].is_kept;
    lines.push_back(is_new ? gateway.line(mesh.sites[peer], kFirstDataLane) : nullptr);
    // The other lanes are not waited for.
    for (int lane = 1; is_new && lane < mesh.lanes; ++lane) {
      gateway.line(mesh.sites[peer], kFirstDataLane + lane);
    }
  }
  std::vector<LinkFault> faults;
  for (int peer = 0; peer < mesh.size(); ++peer) {
    if (lines[peer] == nullptr) continue;
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
