#include "trainer/run/site_network.h"

#include <spdlog/spdlog.h>

#include <limits>

#include "trainer/run/known_sites.h"
#include "wan/link/shaped_transport.h"
#include "wan/transport/local_address.h"
#include "wan/transport/network_check.h"

namespace farstep {

namespace {

constexpr int64_t kLanes = 2;  // with each peer: enough for 400 Mbit/s over 80 ms

// The deadlines that hold until the run is known.
Deadlines deadlines_of(const LoadedSite& loaded) {
  return loaded.run ? run_config_from_json(*loaded.run, loaded.run_file).deadlines : Deadlines{};
}

}  // namespace

std::unique_ptr<SiteNetwork> SiteNetwork::join(const LoadedSite& loaded, const JoinRequest& request,
                                               Clock& clock, const std::stop_token& stop) {
  std::unique_ptr<SiteNetwork> network(new SiteNetwork(loaded, clock));
  const auto welcome = network->member_->join(request, stop);
  if (!welcome) return nullptr;
  network->welcome_ = *welcome;
  network->run_ = run_config_from_json(welcome->run, std::string(kRunSource));
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
  const MeshOptions mesh{.rank = static_cast<int>(welcome_.site_id),
                         .sites = welcome_.sites,
                         .address = resolve_address(site_.network.address, site_.network.interface),
                         .port = static_cast<int>(site_.network.port),
                         .lanes = static_cast<int>(run_.sync.lanes.value_or(
                             planned_lanes(run_, welcome_).value_or(kLanes))),
                         .congestion_control = site_.network.congestion_control,
                         .uplink_bits_per_second = site_.network.uplink_bits_per_second,
                         .generation = static_cast<uint64_t>(welcome_.generation),
                         .connect_seconds = run_.deadlines.connect_seconds};
  const auto links = check_network(mesh, *member_);
  data_path_ = emulate_links(std::make_unique<GlooTransport>(mesh, links, stall_seconds, *member_),
                             stall_seconds);
  member_->on_peer_lost([this](const std::string& site, const std::string& reason) {
    data_path_->abort(site, reason);
  });
  for (std::size_t peer = 0; peer < links.size(); ++peer) {
    if (static_cast<int>(peer) == mesh.rank) continue;
    spdlog::info("link to {}: round trip {:.2f} ms", mesh.sites[peer],
                 1e3 * links[peer].rtt_seconds);
  }
  return *data_path_;
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
