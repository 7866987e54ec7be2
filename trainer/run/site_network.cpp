#include "trainer/run/site_network.h"

#include <spdlog/spdlog.h>

#include <limits>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "outer_optimizer/exchange/ring_exchange.h"
#include "trainer/base/error.h"
#include "trainer/run/known_sites.h"
#include "wan/link/shaped_transport.h"
#include "wan/transport/local_address.h"
#include "wan/transport/network_check.h"

namespace farstep {

namespace {

// The deadlines that hold until the run is known.
Deadlines deadlines_of(const LoadedSite& loaded) {
  return loaded.run ? run_config_from_json(*loaded.run, loaded.run_file).deadlines : Deadlines{};
}

int lanes_of(const RunConfig& run, const Welcome& welcome) {
  // A ring has connections of its own; those of the data path only show then who is lost.
  if (run.sync.exchange == ExchangeKind::kRing) return 1;
  if (run.sync.lanes) return static_cast<int>(*run.sync.lanes);
  const auto planned = planned_lanes(run, welcome);
  return planned ? static_cast<int>(*planned) : usual_lanes(static_cast<int>(run.sites.size()));
}

}  // namespace

std::unique_ptr<SiteNetwork> SiteNetwork::join(const LoadedSite& loaded, const JoinRequest& request,
                                               Clock& clock, const std::stop_token& stop) {
  std::unique_ptr<SiteNetwork> network(new SiteNetwork(loaded, clock));
  const auto welcome = network->member_->join(request, stop);
  if (!welcome) return nullptr;
  network->welcome_ = *welcome;
  network->run_ = run_config_from_json(welcome->run, std::string(kRunSource));
  if (network->site_.network.emulate && network->run_.sync.exchange == ExchangeKind::kRing) {
    throw ConfigError(
        "network.emulate: cannot slow down the connections of Gloo's ring, which the run's "
        "sync.exchange is; remove it, and try a ring on the network of scripts/wan_lab");
  }
  return network;
}

SiteNetwork::SiteNetwork(const LoadedSite& loaded, Clock& clock)
    : site_(loaded.site), clock_(clock) {
  const auto deadlines = deadlines_of(loaded);
  if (site_.coordinator.host) {
    coordinator_ =
        std::make_unique<Coordinator>(site_.coordinator.endpoint, *loaded.run, deadlines, clock);
  }
  member_ = std::make_unique<Member>(site_.coordinator.endpoint, site_.name, deadlines, clock);
}

SiteNetwork::~SiteNetwork() {
  member_->on_peer_lost({});  // it would abort a transport that is gone
}

Transport& SiteNetwork::connect(double stall_seconds) {
  mesh_ = {.rank = static_cast<int>(welcome_.site_id),
           .sites = welcome_.sites,
           .address = resolve_address(site_.network.address, site_.network.interface),
           .port = static_cast<int>(site_.network.port),
           .lanes = lanes_of(run_, welcome_),
           .congestion_control = site_.network.congestion_control,
           .uplink_bits_per_second = site_.network.uplink_bits_per_second,
           .generation = static_cast<uint64_t>(welcome_.generation),
           .connect_seconds = run_.deadlines.connect_seconds};
  const auto links = check_network(mesh_, *member_);
  data_path_ = emulate_links(std::make_unique<GlooTransport>(mesh_, links, stall_seconds, *member_),
                             stall_seconds);
  abort_when_a_peer_is_lost();
  for (std::size_t peer = 0; peer < links.size(); ++peer) {
    if (static_cast<int>(peer) == mesh_.rank) continue;
    spdlog::info("link to {}: round trip {:.2f} ms", mesh_.sites[peer],
                 1e3 * links[peer].rtt_seconds);
  }
  return *data_path_;
}

std::unique_ptr<Exchange> SiteNetwork::make_exchange(double stall_seconds) {
  if (run_.sync.exchange != ExchangeKind::kRing) {
    return std::make_unique<DirectExchange>(*data_path_);
  }
  member_->on_peer_lost({});  // it would look for the ring meanwhile
  ring_ = std::make_unique<GlooRing>(mesh_, stall_seconds, *member_);
  abort_when_a_peer_is_lost();
  return std::make_unique<RingExchange>(*ring_, mesh_.rank);
}

void SiteNetwork::abort_when_a_peer_is_lost() {
  member_->on_peer_lost(
      [this](const std::string& site, const std::string& reason) { abort(site, reason); });
}

void SiteNetwork::abort(const std::string& site, const std::string& reason) {
  if (data_path_) data_path_->abort(site, reason);
  if (ring_) ring_->abort(site, reason);
}

LinkState SiteNetwork::uplink() const {
  auto state = data_path_->uplink();
  if (!ring_) return state;
  const auto bytes = ring_->socket_bytes();
  state.sent_bytes += bytes.sent;
  state.received_bytes += bytes.received;
  state.socket_sent_bytes += bytes.sent;
  state.socket_received_bytes += bytes.received;
  state.retransmitted_bytes += bytes.retransmitted;
  return state;
}

std::unique_ptr<Transport> SiteNetwork::emulate_links(std::unique_ptr<Transport> inner,
                                                      double stall_seconds) const {
  const auto& emulate = site_.network.emulate;
  if (!emulate) return inner;
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  spdlog::info("links are emulated: {}", to_json(*emulate).dump());
  const LinkShape shape{.rate_bits_per_second = kUnlimited,
                        .delay_seconds = emulate->delay_seconds,
                        .loss = emulate->loss};
  const ShapedTransport::Options options{
      .uplink_bits_per_second = emulate->rate_bits_per_second.value_or(kUnlimited),
      .stall_seconds = stall_seconds,
      .seed = static_cast<uint64_t>(run_.seed + welcome_.site_id)};
  return std::make_unique<ShapedTransport>(std::move(inner), shape, options, clock_);
}

void SiteNetwork::leave(Outcome outcome, const std::string& message, double patience_seconds) {
  member_->leave(outcome, message);
  if (coordinator_ && !coordinator_->wait_until_over(patience_seconds)) {
    spdlog::warn("not all sites have left after {} s; the coordinator ends all the same",
                 patience_seconds);
  }
}

}  // namespace farstep
