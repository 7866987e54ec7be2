// A tunnel for each lane and peer, made when either side first needs it and kept until the site
// ends. All of them share one listener, whose thread hands each visitor's channel to its tunnel.
#include "wan/tunnel/gateway.h"

#include <spdlog/spdlog.h>

#include <charconv>
#include <string_view>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// How late the thread may notice that the gateway ends.
constexpr double kTurnSeconds = 0.2;
// Far above the lanes of any run: a member cannot make this site start threads without end.
constexpr int kMostLanes = 64;
constexpr std::string_view kTopic = "lane-";

// Returns the lane of a channel's topic; nullopt if it is none.
std::optional<int> lane_of(const std::string& topic) {
  if (!topic.starts_with(kTopic)) return std::nullopt;
  const auto number = std::string_view(topic).substr(kTopic.size());
  int lane = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), lane);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return lane >= 0 && lane < kMostLanes ? std::optional(lane) : std::nullopt;
}

}  // namespace

// Any other site of the run may come: who takes part is decided behind the port.
Gateway::Gateway(const std::vector<SocketAddress>& addresses, Credentials credentials,
                 const Clock& clock)
    : credentials_(std::move(credentials)),
      strangers_("secure port", clock),
      listener_(
          addresses, credentials_, [this](const std::string& peer) { return peer != site(); },
          [this](std::string_view kind, const std::string& text) { strangers_.warn(kind, text); }),
      port_(listener_.port()),
      thread_([this] { listen(); }) {
  spdlog::info("secure links: TLS 1.3 at port {}, as site {} of run {}", port_, site(),
               credentials_.identity().run);
}

// Asked before any is joined, so that all tunnels drain at the same time.
Gateway::~Gateway() {
  is_stopping_ = true;
  thread_.join();
  for (const auto& [key, tunnel] : tunnels_) tunnel->request_stop();
}

void Gateway::listen() {
  while (!is_stopping_) {
    try {
      if (auto channel = listener_.accept(deadline_after(kTurnSeconds))) {
        welcome(std::move(*channel));
      }
    } catch (const TcpError& error) {
      strangers_.warn("cannot take a connection", error.what());
      // No descriptor is left, until something else closes one.
      std::this_thread::sleep_for(std::chrono::duration<double>(kTurnSeconds));
    } catch (const std::exception& error) {
      strangers_.warn("dropped a connection", error.what());
    }
    strangers_.tick();
  }
}

void Gateway::welcome(SecureChannel channel) {
  // The topic is known before the peer's first byte, and the TLS handshake has covered it.
  const auto lane = lane_of(channel.topic());
  if (!lane) {
    return strangers_.warn("dropped a connection",
                           fmt::format("site {} asks for \"{}\"", channel.peer(), channel.topic()));
  }
  const auto peer = channel.peer();
  tunnel(peer, *lane)->take(std::move(channel));
}

std::shared_ptr<Tunnel> Gateway::tunnel(const std::string& peer, int lane) {
  const std::lock_guard lock(mutex_);
  // Made by whichever comes first: a request of this site, or the peer's connection.
  const std::pair key(peer, lane);
  if (const auto found = tunnels_.find(key); found != tunnels_.end()) return found->second;
  // Made before it has an entry: the process may have no thread or descriptor left for it.
  const auto tunnel = std::make_shared<Tunnel>(peer, lane, credentials_, services_);
  if (const auto known = known_.find(peer); known != known_.end()) {
    tunnel->set_peer_place(known->second.place, known->second.dials_first);
  }
  return tunnels_.emplace(key, tunnel).first->second;
}

void Gateway::know(const std::string& peer, const HostPort& place, bool dials_first) {
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(peer, Known{place, dials_first});
  // Also tunnels that exist already: a peer may come back at another address.
  for (const auto& [key, tunnel] : tunnels_) {
    if (key.first == peer) tunnel->set_peer_place(place, dials_first);
  }
}

// Some lanes lead elsewhere than to the peer's own port: to the endpoint of a coordinator in its
// process, or to a newcomer, of which only its request is known.
void Gateway::know_for_lane(const std::string& peer, int lane, const HostPort& place) {
  tunnel(peer, lane)->set_peer_place(place, true);
}

std::string Gateway::connect(const std::string& peer, int lane, Deadline deadline) {
  const auto to = tunnel(peer, lane);
  if (to->wait_until_connected(deadline)) return "";
  const auto failure = to->failure();
  return failure.empty() ? "it has not connected" : failure;
}

bool Gateway::is_closed_by_peer(const std::string& peer, int lane) const {
  const std::lock_guard lock(mutex_);
  const auto found = tunnels_.find(std::pair(peer, lane));
  return found != tunnels_.end() && found->second->is_closed_by_peer();
}

std::shared_ptr<const void> Gateway::offer(const std::string& peer, const std::string& service,
                                           const SocketAddress& address,
                                           const std::string& source_ip) {
  return services_.offer(peer, service, {address, source_ip});
}

std::shared_ptr<const void> Gateway::offer_to_all(const std::string& service,
                                                  const SocketAddress& address) {
  return services_.offer_to_all(service, address);
}

std::optional<std::string> Gateway::visitor(const std::string& ip) const {
  return services_.visitor(ip);
}

Way Gateway::way_to(const std::string& peer, int lane, const std::string& service,
                    const std::string& ip) {
  const auto door = tunnel(peer, lane)->listen_for(service, ip);
  const auto address = SocketAddress::local_of(door->fd());
  FARSTEP_CHECK(address, "a listener without an address");
  return {*address, door};
}

std::shared_ptr<Line> Gateway::line(const std::string& peer, int lane) {
  return std::make_shared<LineFromNow>(tunnel(peer, lane));
}

}  // namespace farstep::wan
