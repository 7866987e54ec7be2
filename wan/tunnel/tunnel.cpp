// One thread has all sockets of the lane: the TLS connection, the local connections and the local
// listeners. Each turn it sends what it can, polls everything, and moves what has come. Other
// threads only leave requests under the mutex and wake it.
//
// The state of the streams is TunnelEnd's; this unit decides when a connection is made, believed
// and given up. A cut line is connected again and keeps its streams. They end only if the peer's
// process has ended, which its own word or a refused connection proves.
#include "wan/tunnel/tunnel.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

using std::chrono::steady_clock;

// A connection on which nothing comes for so long is broken: each end sends something every second.
constexpr double kSilenceSeconds = 5;
constexpr double kKeepAliveSeconds = 1;
constexpr double kRevocationSeconds = 1;  // between two looks at the list
// The kernel sends the first packet of a connection at once and a second later. So a line that
// heals has one within a second.
constexpr double kConnectSeconds = 2;
constexpr double kHandshakeSeconds = 5;  // also what a process may take longer to end
constexpr double kFirstPauseSeconds = 0.1, kLongestPauseSeconds = 2;
// The end that does not dial first gives the other one time.
constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr double kDrainSeconds = 2;
constexpr const char* kPeerHasEnded = "the peer has ended";
// In one turn, before connections of this machine have theirs.
constexpr int kReadsATurn = 32, kPiecesATurn = 16;

double seconds_since(Deadline time) {
  return std::chrono::duration<double>(steady_clock::now() - time).count();
}

}  // namespace

Tunnel::Tunnel(std::string peer, int lane, const Credentials& credentials, Services& services)
    : peer_(std::move(peer)),
      lane_(lane),
      credentials_(credentials),
      is_first_(credentials.identity().site < peer_),
      streams_(peer_, is_first_, services) {
  FARSTEP_CHECK(credentials.identity().site != peer_, "a tunnel of {} to itself", peer_);
  thread_ = std::thread([this] { run(); });
}

Tunnel::~Tunnel() {
  request_stop();
  thread_.join();
}

void Tunnel::request_stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_stopping_, true)) return;
    drain_until_ = deadline_after(kDrainSeconds);
  }
  waker_.wake();
}

void Tunnel::set_peer_place(const HostPort& place, bool dials_first) {
  {
    const std::lock_guard lock(mutex_);
    if (place_ != place) addresses_ = std::make_shared<HostAddresses>(place);
    place_ = place;
    dials_first_ = dials_first_ || dials_first;
  }
  waker_.wake();
}

void Tunnel::take(SecureChannel channel) {
  {
    const std::lock_guard lock(mutex_);
    // A newer connection of the peer replaces one that was not taken yet.
    offered_.emplace(std::move(channel));
  }
  waker_.wake();
}

std::shared_ptr<const Socket> Tunnel::listen_for(const std::string& name, const std::string& ip) {
  auto door = std::make_shared<const Door>(Door{listen_tcp(SocketAddress(ip, 0)), name});
  {
    const std::lock_guard lock(mutex_);
    doors_.push_back(door);
  }
  waker_.wake();
  // Points at the listener and holds the door: the two end together.
  return {door, &door->listener};
}

bool Tunnel::wait_until_connected(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return is_connected_; });
}

bool Tunnel::is_closed_by_peer() const {
  const std::lock_guard lock(mutex_);
  return is_closed_by_peer_;
}

std::string Tunnel::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Tunnel::run() {
  try {
    while (!is_over()) {
      take_requests();
      if (!channel_ && steady_clock::now() >= next_dial_) dial();
      exchange();
      check_revocation();
      check_silence();
    }
  } catch (const std::exception& error) {
    spdlog::error("secure link to {} ended: {}", peer_, error.what());
    end_all_streams();
  }
}

bool Tunnel::is_over() {
  const std::lock_guard lock(mutex_);
  if (!is_stopping_) return false;
  const bool is_over = !channel_ || streams_.is_drained() || steady_clock::now() >= drain_until_;
  if (is_over && channel_) {
    try {
      channel_->close(deadline_after(0));
    } catch (const PeerError&) {
      // The peer sees the end of the connection, and that this port refuses another.
    }
  }
  return is_over;
}

// Both ends may have dialed. They must not drop different connections, so that of the end whose
// name comes first stays, if it is alive.
void Tunnel::take_requests() {
  std::optional<SecureChannel> offered;
  {
    const std::lock_guard lock(mutex_);
    if (offered_) {
      offered.emplace(std::move(*offered_));
      offered_.reset();
    }
    std::erase_if(doors_, [](const auto& door) { return door.expired(); });
    if (addresses_ && !channel_ && next_dial_ == Time::max()) {
      next_dial_ = dials_first_ ? steady_clock::now() : lost_ + kPatience;
    }
  }
  if (!offered) return;
  // Only if it lives: the peer may have dialed because this connection is dead.
  const bool is_own_better =
      channel_ && is_dialed_ && is_first_ && seconds_since(heard_) < 2 * kKeepAliveSeconds;
  if (!is_own_better) begin(std::move(*offered), false);
}

// At all addresses of the peer in turn: each may lead over another line.
void Tunnel::dial() {
  std::shared_ptr<HostAddresses> addresses;
  const auto next = [&]() -> std::optional<SocketAddress> {
    const std::lock_guard lock(mutex_);
    addresses = is_stopping_ ? nullptr : addresses_;
    return addresses ? addresses->next() : std::nullopt;
  };
  bool has_tried = false;
  for (auto address = next(); address; address = next()) {
    has_tried = true;
    try {
      auto socket = connect_tcp(*address, deadline_after(kConnectSeconds));
      begin(SecureChannel::connect(std::move(socket), peer_, fmt::format("lane-{}", lane_),
                                   credentials_, deadline_after(kHandshakeSeconds)),
            true);
      reached_ = address;
      return addresses->succeed(*address);
    } catch (const TcpError& error) {
      addresses->fail(*address, connecting_failure(*address, error));
      // The machine is there and nobody listens: the peer's process has ended. At another address
      // of the name another machine may be.
      const bool is_there = error.error() == ECONNREFUSED && (!reached_ || reached_ == address);
      if (is_there && streams_.end().streams() > 0) end_all_streams();
    } catch (const PeerError& error) {
      addresses->fail(*address, error.what());
    }
  }
  next_dial_ = Time::max();
  if (!addresses) return;
  // A name that is being looked up has its addresses soon.
  dial_pause_seconds_ =
      std::clamp(has_tried ? 2 * dial_pause_seconds_ : 0, kFirstPauseSeconds, kLongestPauseSeconds);
  next_dial_ = deadline_after(dial_pause_seconds_);
  auto failure = addresses->failure();
  if (!failure.empty()) failure = "cannot connect to " + failure;
  const std::lock_guard lock(mutex_);
  if (failure.empty() || failure_ == failure) return;
  // Once for each reason, as attempts follow each other. A peer that was there is reported as lost.
  if (!has_been_connected_) spdlog::info("secure link to {}: {}", peer_, failure);
  failure_ = failure;
}

void Tunnel::begin(SecureChannel channel, bool is_dialed) {
  send_without_delay(channel.fd());
  keep_alive(channel.fd());
  if (has_been_connected_ && !channel_) {
    spdlog::info("secure link to {}, lane {}: connected again after {:.1f} s", peer_, lane_,
                 seconds_since(lost_));
  } else if (!has_been_connected_) {
    spdlog::debug("secure link to {}, lane {}: connected", peer_, lane_);
  }
  streams_.end().begin_connection();
  heard_ = sent_ = steady_clock::now();
  dial_pause_seconds_ = 0;
  next_dial_ = Time::max();
  has_been_connected_ = true;
  is_dialed_ = is_dialed;
  const std::lock_guard lock(mutex_);
  if (counter_) {
    const auto last = counter_->facts();
    // The figures of a lane go on over a change of the connection, as its users count differences.
    before_.bytes += last.bytes;
    before_.sending_seconds += last.sending_seconds;
    before_.line.delivered_bytes += last.line.delivered_bytes;
    before_.line.retransmitted_bytes += last.line.retransmitted_bytes;
  }
  counter_.emplace(channel.fd());
  counter_->pace_with(control_);
  if (pace_) counter_->limit_pace(*pace_);
  channel_.emplace(std::move(channel));
  is_connected_ = true;
  ++num_connections_;
  is_closed_by_peer_ = false;
  failure_.clear();
  changed_.notify_all();
}

void Tunnel::lose(const std::string& reason, bool is_closed_by_peer) {
  if (!channel_) return;
  streams_.end().end_connection();
  lost_ = steady_clock::now();
  const std::lock_guard lock(mutex_);
  const bool is_expected = is_stopping_ || reason == kPeerHasEnded;
  spdlog::log(is_expected ? spdlog::level::debug : spdlog::level::warn,
              "secure link to {}, lane {}: {}", peer_, lane_, reason);
  if (counter_) counter_->facts();  // the last figures, before the socket goes
  channel_.reset();
  is_connected_ = false;
  is_closed_by_peer_ = is_closed_by_peer;
  failure_ = reason;
  // take_requests() sets it.
  next_dial_ = Time::max();
}

void Tunnel::end_all_streams() {
  streams_.end().restart();
}

// Waits for bytes, a request or a time, and moves what there is. Unsent bytes are few: connections
// of this machine are read only if all that they sent before is with the kernel.
void Tunnel::exchange() {
  bool has_sent_all = false;
  try {
    has_sent_all = channel_ && send();
  } catch (const PeerError& error) {
    lose(error.what(), true);
  }
  // Held during poll(), so that no listener closes meanwhile: its number could become another
  // socket's.
  std::vector<std::shared_ptr<const Door>> doors;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : doors_) {
      if (auto door = weak.lock()) doors.push_back(std::move(door));
    }
  }
  std::vector<pollfd> entries{{waker_.fd(), POLLIN, 0}};
  const bool is_connected = channel_ && streams_.end().is_connected();
  // Writability is asked for only with something to send: an idle connection is always writable.
  const auto channel_events = static_cast<short>(has_sent_all ? POLLIN : POLLIN | POLLOUT);
  entries.push_back({channel_ ? channel_->fd() : -1, channel_events, 0});
  const bool may_admit =
      is_connected && !streams_.end().is_full() && steady_clock::now() >= next_admit_;
  for (const auto& door : doors) {
    entries.push_back({may_admit ? door->listener.fd() : -1, POLLIN, 0});
  }
  const auto first_stream = entries.size();
  streams_.append_entries(entries, is_connected && has_sent_all);
  const auto until =
      // Twice in the keep-alive's period, so that neither silence nor a due keep-alive is noticed
      // late.
      std::min(deadline_after(kKeepAliveSeconds / 2), channel_ ? Time::max() : next_dial_);
  ::poll(entries.data(), entries.size(), milliseconds_until(until));
  waker_.clear();
  streams_.handle(std::span(entries).subspan(first_stream));
  for (std::size_t i = 0; i < doors.size(); ++i) {
    if (entries[2 + i].revents != 0) admit(*doors[i]);
  }
  if (channel_ && entries[1].revents != 0) receive();
}

void Tunnel::admit(const Door& door) {
  Socket local(::accept4(door.listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (local.fd() >= 0) {
    streams_.add(std::move(local), door.service);
  } else if (errno != EAGAIN) {
    // The process has no descriptor left, and the connection waits: a loop here would spin.
    next_admit_ = deadline_after(kLongestPauseSeconds);
  }
}

// Returns whether all has been sent.
bool Tunnel::send() {
  auto& end = streams_.end();
  if (end.owes_ack()) end.acknowledge();
  for (int i = 0; i < kPiecesATurn; ++i) {
    const auto output = end.output();
    if (output.empty()) return true;
    const auto count = channel_->send_now(output);
    if (count > 0) sent_ = steady_clock::now();
    end.sent(count);
    if (count < output.size()) return false;
  }
  return false;
}

void Tunnel::receive() {
  auto& end = streams_.end();
  try {
    for (int i = 0; i < kReadsATurn; ++i) {
      const auto count = channel_->receive_now(end.input());
      if (!count) {
        lose(kPeerHasEnded, true);
        return end_all_streams();
      }
      if (*count == 0) return;
      heard_ = steady_clock::now();
      end.received(*count);
    }
    // OpenSSL may hold bytes that poll() does not see.
    waker_.wake();
  } catch (const PeerError& error) {
    lose(error.what(), true);
  } catch (const WrongFrame& error) {
    lose(fmt::format("the peer does not keep to the protocol: {}", error.what()), false);
    end_all_streams();
  }
}

// A peer whose key was stolen and revoked must not stay for as long as its connection lasts.
void Tunnel::check_revocation() {
  if (!channel_ || seconds_since(checked_) < kRevocationSeconds) return;
  checked_ = steady_clock::now();
  if (!credentials_.is_revoked(channel_->peer_certificate())) return;
  lose("its certificate was revoked", false);
  end_all_streams();
}

void Tunnel::check_silence() {
  if (!channel_) return;
  if (seconds_since(heard_) > kSilenceSeconds) {
    return lose(fmt::format("nothing has come for {} s", kSilenceSeconds), false);
  }
  if (seconds_since(sent_) > kKeepAliveSeconds) streams_.end().keep_alive();
}

SocketFacts Tunnel::facts() {
  const std::lock_guard lock(mutex_);
  auto facts = before_;
  if (counter_) facts = counter_->facts();
  facts.is_unanswered = !is_connected_;
  facts.answers = num_connections_;
  if (!counter_) return facts;
  facts.bytes += before_.bytes;
  facts.sending_seconds += before_.sending_seconds;
  facts.line.delivered_bytes += before_.line.delivered_bytes;
  facts.line.retransmitted_bytes += before_.line.retransmitted_bytes;
  return facts;
}

void Tunnel::limit_pace(double bits_per_second) {
  const std::lock_guard lock(mutex_);
  pace_ = bits_per_second;
  if (counter_) counter_->limit_pace(bits_per_second);
}

void Tunnel::pace_with(const std::string& congestion_control) {
  const std::lock_guard lock(mutex_);
  control_ = congestion_control;
  if (counter_) counter_->pace_with(congestion_control);
}

}  // namespace farstep::wan
