// Gloo moves the bytes. This unit adds what Gloo lacks: a pace for long lines, one reason for
// everything that fails at once, and notice of a peer's end while nobody waits for it.
//
// Order of locks: ending_mutex_ or pacing_mutex_, then mutex_. No call into Gloo that may wait is
// made under mutex_.
#include "wan/transport/gloo/gloo_connections.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "wan/transport/gloo/gloo_meeting.h"
#include "wan/transport/relay.h"

namespace farstep::wan {

namespace {

// Between two readings of the kernel's counts: a reading costs three system calls a lane. A queue
// of a second, which the pacer needs, has twenty readings.
constexpr double kObserveSeconds = 0.05;
// The congestion controls used when the mesh's options state none. CUBIC keeps a line full; BBR
// regularly leaves part of it free to measure it, and took 5 % longer
// (docs/results/wan_exchange.md), but losses do not slow it down.
constexpr const char* kControl = "cubic";
constexpr const char* kLossyControl = "bbr";

}  // namespace

GlooConnections::GlooConnections(const MeshOptions& mesh, KeptConnections& kept)
    : mesh_(mesh), kept_(kept), links_(mesh.sites.size()) {}

// Watchers end before the connections close: to them a closing connection would be a lost peer.
GlooConnections::~GlooConnections() {
  lane_thread_ = {};
  for (auto& link : links_) {
    if (link) link->end();
  }
  std::vector<GlooConnectionPtr> closing;
  for (const int peer : peers()) {
    auto& link = links_[peer];
    if (!link) continue;
    if (link->is_clean()) {
      kept_.leave(mesh_.sites[peer], std::move(link));
    } else {
      closing.push_back(std::move(link));
    }
  }
  close_all(std::move(closing));
}

void GlooConnections::open(const std::vector<PeerLink>& links, Store& store) {
  std::vector<int> strangers;
  std::vector<int> taken;
  for (const int peer : peers()) {
    if (links.empty() || !links[peer].is_kept) {
      strangers.push_back(peer);
      continue;
    }
    auto connection = kept_.take(mesh_.sites[peer]);
    FARSTEP_CHECK(connection, "no connection with {} was kept", mesh_.sites[peer]);
    for (const auto& lane : connection->lanes) taken.push_back(lane.socket->fd());
    begin(peer, std::move(connection));
  }
  kept_.close();
  if (!strangers.empty()) {
    GlooMeeting meeting(mesh_, kept_, store, std::move(taken));
    for (auto& [peer, connection] : meeting.connect(strangers, links)) {
      begin(peer, std::move(connection));
    }
  }
  for (const int peer : peers()) {
    links_[peer]->watch()->start([this, peer](const std::string& reason) { fail(peer, reason); });
  }
  if (!mesh_.on_standing) return;
  lane_thread_ = every_second([this] { watch_lanes(); });
}

// A kept connection has begun in KeptConnections::offer(). A line, and its pace, are for this mesh.
void GlooConnections::begin(int peer, GlooConnectionPtr connection) {
  links_[peer] = std::move(connection);
  auto& link = *links_[peer];
  run(peer, [&] {
    if (link.watch() == nullptr) link.begin(mesh_.generation);
  });
  const auto& control = mesh_.congestion_control;
  for (int number = 0; number < mesh_.lanes; ++number) {
    auto& lane = link.lanes[static_cast<std::size_t>(number)];
    const auto line = mesh_.relay == nullptr
                          ? std::make_shared<LineFromNow>(lane.socket)
                          : mesh_.relay->line(mesh_.sites[peer], kFirstDataLane + number);
    line->pace_with(!control.empty() ? control : link.losses ? kControl : kLossyControl);
    line->limit_pace(mesh_.uplink_bits_per_second
                         ? *mesh_.uplink_bits_per_second / (mesh_.size() - 1) / mesh_.lanes
                         : std::numeric_limits<double>::infinity());
    const std::lock_guard lock(mutex_);
    lane.line = line;
  }
}

void GlooConnections::give_up_all(const std::string& site, const std::string& reason) {
  abort(site, reason);
  for (auto& link : links_) {
    if (link) link->spoil();
  }
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
  return *links_[peer];
}

// A peer that lost another site sends that site's rank and closes. The lost site is then the cause.
void GlooConnections::fail(int peer, const std::string& reason) {
  // The peer's own name would be wrong: it ended because of that site.
  const auto& own = mesh_.sites[mesh_.rank];
  const auto& name = mesh_.sites[peer];
  auto* const watch = links_[peer]->watch();
  const auto lost = watch != nullptr ? watch->lost_by_peer() : -1;
  if (lost >= 0 && lost < mesh_.size() && lost != mesh_.rank) {
    abort(mesh_.sites[lost],
          fmt::format("{} told {} that it lost {}", name, own, mesh_.sites[lost]));
  } else {
    links_[peer]->spoil();
    abort(name, fmt::format("the connection of {} to {} failed: {}", own, name, reason));
  }
}

void GlooConnections::abort(const std::string& site, const std::string& reason) {
  end(site, reason, true);
}

// The closed connection is the farewell: the peers need no other.
void GlooConnections::give_up(int peer) {
  const auto& site = mesh_.sites[peer];
  links_[peer]->close();
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
    for (auto& lane : links_[to]->lanes) {
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
    auto& link = *links_[peer];
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
    if (stands(*links_[peer])) mesh_.on_standing(mesh_.sites[peer]);
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
  for (const int peer : peers()) {
    for (auto& lane : links_[peer]->lanes) {
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

void GlooConnections::say_farewell(const std::string& lost_site) {
  const auto lost =
      std::find(mesh_.sites.begin(), mesh_.sites.end(), lost_site) - mesh_.sites.begin();
  if (lost == mesh_.size()) return;
  for (const int peer : peers()) {
    const auto& link = links_[peer];
    if (link && link->watch() != nullptr && peer != lost) link->watch()->say_farewell(lost);
  }
}

}  // namespace farstep::wan
