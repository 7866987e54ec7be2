// Gloo moves the bytes. This unit adds what Gloo lacks: chosen ports, a pace for long lines, one
// reason for everything that fails at once, and notice of a peer's end while nobody waits for it.
//
// Order of locks: ending_mutex_ or pacing_mutex_, then mutex_. No call into Gloo that may wait is
// made under mutex_.
#include "wan/transport/gloo/gloo_connections.h"

#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "wan/transport/gloo/chosen_port.h"

namespace farstep::wan {

namespace {

using std::chrono::milliseconds;

// Between two readings of the kernel's counts: a reading costs three system calls a lane. A queue
// of a second, which the pacer needs, has twenty readings.
constexpr double kObserveSeconds = 0.05;
// The congestion controls used when the mesh's options state none. CUBIC keeps a line full; BBR
// regularly leaves part of it free to measure it, and took 5 % longer
// (docs/results/wan_exchange.md), but losses do not slow it down.
constexpr const char* kControl = "cubic";
constexpr const char* kLossyControl = "bbr";

// Gives Gloo the address itself, so that it resolves no host name.
gloo::transport::tcp::attr listening_attributes(const SocketAddress& address) {
  gloo::transport::tcp::attr attributes;
  attributes.ai_family = address.family();
  attributes.ai_socktype = SOCK_STREAM;
  attributes.ai_protocol = 0;
  attributes.ai_addr = {};
  std::memcpy(&attributes.ai_addr, address.get(), address.size());
  attributes.ai_addrlen = static_cast<int>(address.size());
  return attributes;
}

void close_all(GlooConnection& link, int peer) {
  for (auto& lane : link.lanes) lane.context->getPair(peer)->close();
}

SocketAddress address_in(const std::vector<char>& gloo_address) {
  return SocketAddress(gloo::transport::tcp::Address(gloo_address).getSockaddr());
}

}  // namespace

milliseconds to_milliseconds(double seconds) {
  constexpr double kMostSeconds = 1e9;
  const double limited = std::min(seconds, kMostSeconds);
  return std::max(milliseconds(1), milliseconds(static_cast<int64_t>(limited * 1e3)));
}

// Watchers end before the connections close: to them a closing connection would be a lost peer.
GlooConnections::~GlooConnections() {
  lane_thread_ = {};
  for (auto& link : links_) {
    if (link.watch) link.watch->request_stop();
  }
  for (auto& link : links_) {
    if (link.watch) link.watch->join();
  }
  for (const int peer : peers()) {
    auto& link = links_[peer];
    if (link.watch) close_all(link, peer);
    // Buffers go before the contexts that they belong to.
    link.watch.reset();
    link.lanes.clear();
  }
}

// Publishes the addresses for all peers before it waits for any peer's: otherwise two sites could
// wait for each other.
void GlooConnections::open(const std::vector<PeerLink>& links, Store& store) {
  for (const int peer : peers()) {
    listen_for(peer, links.empty() ? "" : links[peer].source_address, store);
  }
  for (const int peer : peers()) connect_to(peer, store);
  for (const int peer : peers()) {
    links_[peer].watch->start([this, peer](const std::string& reason) { fail(peer, reason); });
  }
  if (!mesh_.on_standing) return;
  lane_thread_ = every_second([this] { watch_lanes(); });
}

std::vector<int> GlooConnections::peers() const {
  std::vector<int> peers;
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != mesh_.rank) peers.push_back(peer);
  }
  return peers;
}

GlooConnection& GlooConnections::to(int peer) {
  FARSTEP_CHECK(peer >= 0 && peer < mesh_.size() && peer != mesh_.rank, "no peer with rank {}",
                peer);
  return links_[peer];
}

// A peer that lost another site sends that site's rank and closes. The lost site is then the cause.
void GlooConnections::fail(int peer, const std::string& reason) {
  // The peer's own name would be wrong: it ended because of that site.
  const auto& own = mesh_.sites[mesh_.rank];
  const auto& name = mesh_.sites[peer];
  const auto lost = links_[peer].watch ? links_[peer].watch->lost_by_peer() : -1;
  if (lost >= 0 && lost < mesh_.size() && lost != mesh_.rank) {
    abort(mesh_.sites[lost],
          fmt::format("{} told {} that it lost {}", name, own, mesh_.sites[lost]));
  } else {
    abort(name, fmt::format("the connection of {} to {} failed: {}", own, name, reason));
  }
}

void GlooConnections::abort(const std::string& site, const std::string& reason) {
  end(site, reason, true);
}

// The closed connection is the farewell: the peers need no other.
void GlooConnections::give_up(int peer) {
  const auto& site = mesh_.sites[peer];
  close_all(links_[peer], peer);
  end(site, fmt::format("a transfer with {} was given up", site), false);
}

void GlooConnections::end(const std::string& site, const std::string& reason, bool tell_peers) {
  // The first failure wins; a second caller returns only when the transport is dead. Peers hear of
  // the failure before any wait ends, because a thread that wakes up may close connections.
  const std::lock_guard ending(ending_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
  }
  if (tell_peers) say_farewell(site);
  const std::lock_guard lock(mutex_);
  // From here on every new transfer throws, and waits under way end.
  failure_.emplace(site, reason);
  for (auto* buffer : enrolled_) {
    buffer->abortWaitSend();
    buffer->abortWaitRecv();
  }
}

void GlooConnections::throw_if_dead() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw PeerError(*failure_);
}

void GlooConnections::enroll(gloo::transport::UnboundBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  enrolled_.insert(buffer);
}

// Under the lock, because end() must not abort a buffer that has gone.
void GlooConnections::dismiss(gloo::transport::UnboundBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  enrolled_.erase(buffer);
}

void GlooConnections::begin_send() {
  // One lock from the clock to the pacer, so that samples reach it in the order of their times.
  const std::lock_guard pacing(pacing_mutex_);
  const double now_seconds = clock_.now_seconds();
  pacer_.begin(now_seconds);
  if (now_seconds >= observed_seconds_ + kObserveSeconds) observe_lines(now_seconds);
}

// The pacer gets a fresh sample before the last end(), which may evaluate the busy time.
void GlooConnections::end_send(int peer, uint64_t bytes) {
  const std::lock_guard pacing(pacing_mutex_);
  const double now_seconds = clock_.now_seconds();
  if (pacer_.ends_with_next() || now_seconds >= observed_seconds_ + kObserveSeconds)
    observe_lines(now_seconds);
  const auto paces = pacer_.end(now_seconds, peer, bytes);
  if (!paces || mesh_.uplink_bits_per_second) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [to, pace] : *paces) {
    for (auto& lane : links_[to].lanes) {
      if (lane.line) lane.line->limit_pace(pace / mesh_.lanes);
    }
  }
}
// Reads the kernel's counts of all lanes. The caller holds pacing_mutex_.
void GlooConnections::observe_lines(double now_seconds) {
  observed_seconds_ = now_seconds;
  const std::lock_guard lock(mutex_);
  LineSample all;
  for (const int peer : peers()) {
    auto& link = links_[peer];
    LineSample sample;
    for (auto& lane : link.lanes) {
      if (lane.line) sample += lane.line->facts().line;
    }
    sample.now_seconds = now_seconds;
    all += sample;
    // A stated control is the user's choice, and is not changed.
    const bool watches = link.losses && mesh_.congestion_control.empty();
    if (watches && link.losses->is_lossy(sample)) change_control(link);
  }
  pacer_.observe(all);
}

// Whether the peer or its line is at fault the coordinator knows: it hears of the peer, or not.
void GlooConnections::watch_lanes() {
  for (const int peer : peers()) {
    if (stands(links_[peer])) mesh_.on_standing(mesh_.sites[peer]);
  }
}

bool GlooConnections::stands(GlooConnection& link) {
  const std::lock_guard lock(mutex_);
  bool stands = false;
  for (auto& lane : link.lanes) {
    if (!lane.line) continue;
    const auto facts = lane.line->facts();
    lane.stall.look(clock_.now_seconds(), facts.is_unanswered, facts.answers);
    if (lane.stall.has_changed()) lane.line->hurry(lane.stall.stands());
    stands |= lane.stall.stands();
  }
  return stands;
}

// Continues with BBR on all lanes of a peer. The caller holds both mutexes.
void GlooConnections::change_control(GlooConnection& lossy) {
  lossy.losses.reset();  // for good: BBR needs no second change
  for (auto& lane : lossy.lanes) {
    if (lane.line) lane.line->pace_with(kLossyControl);
  }
  if (mesh_.uplink_bits_per_second) return;
  pacer_.forget();  // CUBIC reached less than the line carries
  // Without a pace BBR finds the line's rate, and the pacer learns from that.
  for (auto& link : links_) {
    for (auto& lane : link.lanes) {
      if (lane.line) lane.line->limit_pace(std::numeric_limits<double>::infinity());
    }
  }
}

LinkState GlooConnections::link(int peer) {
  auto& connection = to(peer);
  LinkState state{.sent_bytes = connection.sent_bytes, .received_bytes = connection.received_bytes};
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  double rtt_seconds = kUnknown, least_rtt_seconds = kUnknown;
  const std::lock_guard lock(mutex_);
  for (auto& lane : connection.lanes) {
    if (!lane.line) continue;
    const auto facts = lane.line->facts();
    state.socket_sent_bytes += facts.bytes.sent;
    state.socket_received_bytes += facts.bytes.received;
    state.retransmitted_bytes += facts.bytes.retransmitted;
    // A message of some size uses all lanes at the same time, so the times overlap and do not add.
    state.sending_seconds = std::max(state.sending_seconds, facts.sending_seconds);
    // The least of the lanes has waited least in this site's own queue.
    rtt_seconds = std::min(rtt_seconds, facts.rtt_seconds);
    least_rtt_seconds = std::min(least_rtt_seconds, facts.line.least_rtt_seconds);
  }
  if (std::isfinite(rtt_seconds)) {
    state.rtt_seconds = rtt_seconds;
    state.least_rtt_seconds = least_rtt_seconds;
  }
  return state;
}

// Listens for a peer's connections and publishes the addresses in the store, in order of lanes.
void GlooConnections::listen_for(int peer, const std::string& source_ip, Store& store) {
  auto& lanes = links_[peer].lanes;
  lanes.resize(static_cast<std::size_t>(mesh_.lanes));
  std::string addresses;
  for (int lane = 0; lane < mesh_.lanes; ++lane) {
    auto& own = lanes[lane];
    listen(own, peer, mesh_.port_for(peer, lane), source_ip);
    addresses.append(own.own_address.begin(), own.own_address.end());
    if (mesh_.relay == nullptr) continue;
    own.offer = mesh_.relay->offer(mesh_.sites[peer], service(mesh_.rank, peer, lane),
                                   address_in(own.own_address), source_ip);
  }
  store.put(key(mesh_.rank, peer), addresses);
}

namespace {

// Gloo's message has no number of the system's error, so the port is tried once more. Returns 0 if
// it is free.
int listening_error(const SocketAddress& address) {
  try {
    listen_tcp(address);
    return 0;
  } catch (const TcpError& error) {
    return error.error();
  }
}

}  // namespace

// Listens on a port that only the peer's source address reaches.
void GlooConnections::listen(GlooLane& lane, int peer, int port, const std::string& source_ip) {
  const SocketAddress address(mesh_.address, port);
  try {
    const ChosenPort chosen(port);
    lane.device = std::make_shared<gloo::transport::tcp::Device>(
        listening_attributes(SocketAddress(address.ip(), 0)));
    lane.context = lane.device->createContext(mesh_.rank, mesh_.size());
    // Gloo waits five times its timeout for a connection.
    lane.context->setTimeout(to_milliseconds(mesh_.connect_seconds / 5));
    lane.own_address = lane.context->createPair(peer)->address().bytes();
  } catch (const std::exception& error) {
    throw_cannot_listen(listening_error(address),
                        fmt::format("network.port: {} cannot listen on {}: {}",
                                    mesh_.sites[mesh_.rank], address.text(), error.what()));
  }
  // Without a check of the network nobody knows from where the peer comes.
  if (source_ip.empty()) return;
  const auto own = address_in(lane.own_address);
  const int fd = find_socket([&](const auto& local, const auto&) { return local == own; });
  FARSTEP_CHECK(fd >= 0, "no socket listens on {}", own.text());
  accept_only_from(fd, source_ip);
}

// The store has the addresses of all lanes in one value, of equal lengths.
void GlooConnections::connect_to(int peer, Store& store) {
  auto& link = links_[peer];
  const auto addresses = store.get(key(peer, mesh_.rank));
  const std::size_t size = addresses.size() / link.lanes.size();
  run(peer, [&] {
    for (int lane = 0; lane < mesh_.lanes; ++lane) {
      const auto begin = addresses.begin() + static_cast<std::ptrdiff_t>(lane * size);
      connect(peer, lane, {begin, begin + static_cast<std::ptrdiff_t>(size)});
    }
    link.watch = std::make_unique<PeerWatch>(*link.lanes.front().context, peer);
  });
}

// Connects to a peer that listens too. Gloo decides which of the two dials, by their addresses.
// With a relay the peer's own one is an address at its machine, and a way leads there.
void GlooConnections::connect(int peer, int lane_number, const std::vector<char>& peer_address) {
  auto& lane = links_[peer].lanes[lane_number];
  auto there = address_in(peer_address);
  if (mesh_.relay != nullptr) {
    lane.way = mesh_.relay->way_to(mesh_.sites[peer], kFirstDataLane + lane_number,
                                   service(peer, mesh_.rank, lane_number), loopback_ip(peer));
    there = lane.way->address;
    const gloo::transport::tcp::Address given(peer_address);
    lane.context->getPair(peer)->connect(
        gloo::transport::tcp::Address(there.storage(), given.getSeq()).bytes());
  } else {
    lane.context->getPair(peer)->connect(peer_address);
  }
  // The accepting end keeps the address that it listened on; so one of these two matches.
  const auto here = address_in(lane.own_address);
  const int fd = find_socket([&](const auto& local, const auto& remote) {
    return remote && (local == here || *remote == there);
  });
  if (fd < 0) throw std::runtime_error("it closed the connection at once");
  keep_alive(fd);
  std::shared_ptr<Line> line;
  if (mesh_.relay == nullptr) {
    line = std::make_shared<SocketCounter>(fd);
  } else {
    line = mesh_.relay->line(mesh_.sites[peer], kFirstDataLane + lane_number);
    // That of an earlier mesh.
    line->limit_pace(std::numeric_limits<double>::infinity());
  }
  line->pace_with(mesh_.congestion_control.empty() ? kControl : mesh_.congestion_control);
  if (mesh_.uplink_bits_per_second) {
    line->limit_pace(*mesh_.uplink_bits_per_second / (mesh_.size() - 1) / mesh_.lanes);
  }
  const std::lock_guard lock(mutex_);
  lane.line = std::move(line);
}

void GlooConnections::say_farewell(const std::string& lost_site) {
  const auto lost =
      std::find(mesh_.sites.begin(), mesh_.sites.end(), lost_site) - mesh_.sites.begin();
  if (lost == mesh_.size()) return;
  for (const int peer : peers()) {
    if (links_[peer].watch && peer != lost) links_[peer].watch->say_farewell(lost);
  }
}

std::string GlooConnections::service(int from, int to, int lane) const {
  return fmt::format("{}/{}", key(from, to), lane);
}

std::string GlooConnections::key(int from, int to) const {
  return fmt::format("gloo/{}/{}/{}", mesh_.generation, from, to);
}

}  // namespace farstep::wan
