// Everything that connects the members of one view: the transport, its meters and the exchange. It
// is made and destroyed as a whole, but whole connections go on to the next view.
#include "trainer/peers/links.h"

#include <spdlog/spdlog.h>

#include <limits>

#include "trainer/peers/secure_port.h"
#include "wan/emulate/shaped_transport.h"
#include "wan/sockets/local_address.h"
#include "wan/transport/gloo/gloo_transport.h"
#include "wan/transport/gloo/kept_connections.h"
#include "wan/transport/network_check.h"
#include "wan/tunnel/tunnel_check.h"

namespace farstep {

namespace {

wan::MeshOptions mesh_of(const View& view, const LinkOptions& options, wan::Member& member) {
  const auto& network = options.network;
  auto* secure_port = options.secure_port;
  const auto rank = static_cast<int>(view.self);
  return {.rank = rank,
          .sites = view.members,
          .address = secure_port != nullptr
                         ? wan::loopback_ip(rank)
                         : wan::resolve_address(network.address, network.interface),
          .port = secure_port != nullptr ? 0 : static_cast<int>(network.port),
          .lanes = options.lanes,
          .congestion_control = network.congestion_control,
          .uplink_bits_per_second = network.uplink_bits_per_second,
          .generation = static_cast<uint64_t>(view.generation),
          .connect_seconds = options.connect_seconds,
          .relay = secure_port != nullptr ? &secure_port->gateway() : nullptr,
          .on_standing = [&member, generation = view.generation](const std::string& site) {
            member.report_standing(generation, site);
          }};
}

wan::NetworkFindings check(const wan::MeshOptions& mesh, const LinkOptions& options,
                           wan::Member& member) {
  const auto offers = options.kept != nullptr ? options.kept->offer(mesh) : wan::Offers{};
  auto* const port = options.secure_port;
  if (port == nullptr) return check_network(mesh, member, offers);
  return check_tunnels(mesh, port->reached_at(), port->gateway(), member, offers);
}

// Returns the ways to the peers. A member's error may end in another try, and so in no message.
std::vector<wan::PeerLink> ways_to_peers(const wan::MeshOptions& mesh, const LinkOptions& options,
                                         wan::Member& member) {
  const auto found = check(mesh, options, member);
  if (options.stage == wan::LinkStage::kRun) {
    for (const auto& fault : found.faults) spdlog::warn("{}", fault.text);
  }
  require_links(found.faults, mesh, options.stage);
  return found.links;
}

std::unique_ptr<wan::Transport> emulate_links(std::unique_ptr<wan::Transport> inner,
                                              const LinkOptions& options, Clock& clock) {
  const auto& emulate = options.network.emulate;
  if (!emulate) return inner;
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  spdlog::info("links are emulated: {}", to_json(*emulate).dump());
  // A link has no rate of its own here: the config states what the site sends to all peers
  // together.
  const wan::LinkShape shape{.rate_bits_per_second = kUnlimited,
                             .delay_seconds = emulate->delay_seconds,
                             .loss = emulate->loss};
  const wan::ShapedTransport::Options shaped{
      .uplink_bits_per_second = emulate->rate_bits_per_second.value_or(kUnlimited),
      .stall_seconds = options.stall_seconds,
      .seed = options.seed};
  return std::make_unique<wan::ShapedTransport>(std::move(inner), shape, shaped, clock);
}

}  // namespace

Links::Links(const View& view, const LinkOptions& options, wan::Member& member, Clock& clock)
    : member_(member),
      stall_seconds_(options.stall_seconds),
      mesh_(mesh_of(view, options, member)) {
  // Before Gloo connects, because Gloo's errors name neither the site nor a remedy.
  const auto found = ways_to_peers(mesh_, options, member_);
  transport_ = emulate_links(
      std::make_unique<wan::GlooTransport>(mesh_, found, stall_seconds_, member_, options.kept),
      options, clock);
  meters_ = std::make_unique<wan::LinkMeters>(*transport_);
  // Only now, because the listener uses the transport.
  abort_when_a_peer_is_lost();
  for (std::size_t peer = 0; peer < found.size(); ++peer) {
    if (peer == view.self || found[peer].is_kept) continue;
    spdlog::info("link to {}: round trip {:.2f} ms", view.members[peer],
                 1e3 * found[peer].rtt_seconds);
  }
}

Links::~Links() {
  member_.on_peer_lost(0, {});  // the listener aborts transport_, which ends here
}

void Links::make_exchange(outer_optimizer::ExchangeKind kind) {
  // The listener runs on the member's thread.
  member_.on_peer_lost(0, {});  // the listener reads exchange_, which is being made
  exchange_ = farstep::make_exchange(
      kind,
      {.links = *transport_, .mesh = mesh_, .stall_seconds = stall_seconds_, .store = member_});
  abort_when_a_peer_is_lost();
}

LinkUse Links::uplink() const {
  LinkUse use{.state = transport_->uplink(),
              .bits_per_second = meters_->uplink().bits_per_second()};
  const auto bytes = exchange_ ? exchange_->own_bytes() : std::nullopt;
  if (!bytes) return use;
  use.state.sent_bytes += bytes->sent;
  use.state.received_bytes += bytes->received;
  use.state.socket_sent_bytes += bytes->sent;
  use.state.socket_received_bytes += bytes->received;
  use.state.retransmitted_bytes += bytes->retransmitted;
  return use;
}

std::vector<LinkUse> Links::links() const {
  std::vector<LinkUse> uses;
  // Of connections besides the links the kernel's count is for all peers together.
  if (exchange_ && exchange_->own_bytes()) return uses;
  for (int peer = 0; peer < transport_->size(); ++peer) {
    if (peer == transport_->rank()) {
      uses.emplace_back();
    } else {
      uses.push_back({.state = transport_->link(peer),
                      .bits_per_second = meters_->link(peer).bits_per_second()});
    }
  }
  return uses;
}

void Links::abort_when_a_peer_is_lost() {
  member_.on_peer_lost(
      static_cast<int64_t>(mesh_.generation),
      [this](const std::string& site, const std::string& reason) { abort(site, reason); });
}

void Links::abort(const std::string& site, const std::string& reason) {
  transport_->abort(site, reason);
  if (exchange_) exchange_->abort(site, reason);
}

}  // namespace farstep
