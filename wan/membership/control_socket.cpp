// ZeroMQ reconnects and queues by itself; this unit bounds what it does: the size of messages, the
// peers that it listens to, and how long a dead connection goes unnoticed.
#include "wan/membership/control_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "wan/sockets/local_address.h"

namespace farstep::wan {

namespace {

// The largest message to a site is a welcome with the run and all profiles, and that of a site a
// registration with them or a long record: these are far above both, and stop a stranger from
// filling the memory. ZeroMQ applies them to each frame of a message.
constexpr int64_t kLargestToSiteBytes = int64_t{16} << 20;
constexpr int64_t kLargestOfSiteBytes = int64_t{4} << 20;
// That ZeroMQ reads ahead on one connection. A site waits for an answer before its next request,
// and sends little besides; whoever sends more waits with it.
constexpr int kMostWaitingMessages = 16;
// Name and password of the PLAIN handshake, the same in all versions of Farstep. Without a
// mechanism ZeroMQ also takes peers of its versions 1 and 2, which need no handshake: almost any
// bytes are then the start of an endless message of small frames, which it keeps in memory.
constexpr std::string_view kPeerName = "farstep";
// Where ZeroMQ asks about the peers of all PLAIN servers of a context, by its protocol ZAP
// (https://rfc.zeromq.org/spec/27). Without an answer it refuses them all.
constexpr const char* kHandshakeEndpoint = "inproc://zeromq.zap.01";
constexpr const char* kChangesEndpoint = "inproc://changes";
// Together a dead connection is noticed after a minute, and routers keep an idle one. Heartbeats
// notice a dead site sooner.
constexpr int kKeepaliveIdleSeconds = 30;
constexpr int kKeepaliveIntervalSeconds = 10;
constexpr int kKeepaliveProbes = 3;

// A site that hears nothing for so long makes its connection anew. TCP alone repeats what was lost
// ever more rarely: after an outage it would stand still for as long again.
constexpr double kPingSeconds = 1, kSilenceSeconds = 5;
// At most, for one attempt to connect: the kernel sends its first packet at once, after 1 s and
// after 3 s. So a line that is back has one within 2 s.
constexpr double kConnectSeconds = 4;
// Between two looks at a name that is being looked up.
constexpr double kLookUpSeconds = 0.1;
constexpr double kFirstLookUpSeconds = 0.5;

// Sites send none. So a stranger has to open a connection for every ten of them.
constexpr int kMostStrangeMessages = 10;

int milliseconds(double seconds) {
  return static_cast<int>(std::ceil(1000 * std::clamp(seconds, 0.0, 1e6)));
}

// By this id the coordinator recognises a site whose connection broke and was opened again. The id
// is random, because a restarted site must not pass for the one before.
std::string random_routing_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// ZeroMQ has one number for the families of all its connections, and takes an IPv4 address for one
// within IPv6 where both are allowed.
void allow_family(zmq::socket_t& socket, const SocketAddress& address) {
  socket.set(zmq::sockopt::ipv6, address.family() == AF_INET6);
}

// A signal may interrupt any call of ZeroMQ before it has an effect.
template <typename Call>
auto uninterrupted(Call call) {
  while (true) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

// ZeroMQ delivers all frames of a message or none, so only the first receive can find nothing.
// Sets `descriptor` to that of the connection unless it is null.
std::optional<ControlSocket::Received> receive_from(zmq::socket_t& socket, bool knows_site,
                                                    int* descriptor = nullptr) {
  ControlSocket::Received received;
  bool more = true;
  while (more) {
    zmq::message_t frame;
    if (!uninterrupted([&] { return socket.recv(frame, zmq::recv_flags::dontwait); })) {
      return std::nullopt;
    }
    more = frame.more();
    received.frames.push_back(frame.to_string());
    if (!more && knows_site) received.site = frame.gets("User-Id");
    if (!more && descriptor != nullptr) *descriptor = frame.get(ZMQ_SRCFD);
  }
  return received;
}

// A signal ends it early.
void poll(std::span<zmq_pollitem_t> items, double timeout_seconds) {
  const int ready =
      ::zmq_poll(items.data(), static_cast<int>(items.size()), milliseconds(timeout_seconds));
  FARSTEP_CHECK(ready >= 0 || errno == EINTR, "waiting on the control socket failed: {}",
                zmq_strerror(errno));
}

// Drops the message if the socket cannot take it at once.
void send_to(zmq::socket_t& socket, const ControlSocket::Frames& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto more = i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    const auto flags = more | zmq::send_flags::dontwait;
    if (!uninterrupted([&] { return socket.send(zmq::buffer(frames[i]), flags); })) return;
  }
}

}  // namespace

ControlSocket::ControlSocket(Role role, const std::string& endpoint, const Deadlines& deadlines,
                             Visitors visitors)
    : visitors_(std::move(visitors)),
      socket_(context_,
              role == Role::kCoordinator ? zmq::socket_type::router : zmq::socket_type::dealer) {
  const std::string field = "coordinator endpoint " + endpoint;
  const auto place = parse_endpoint("coordinator endpoint", endpoint);
  set_up(role, deadlines);
  if (role == Role::kCoordinator) {
    handshakes_ = zmq::socket_t(context_, zmq::socket_type::rep);
    handshakes_.bind(kHandshakeEndpoint);  // before the first peer can come
    watch(ZMQ_EVENT_DISCONNECTED);
    listen(field, listening_addresses(field, place));
    return;
  }
  endpoint_ = endpoint;
  addresses_ = std::make_unique<HostAddresses>(place);
  watch(ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED);
  // Mostly that is enough for the first message to have a connection.
  follow_addresses(kFirstLookUpSeconds);
}

void ControlSocket::listen(const std::string& field, const std::vector<SocketAddress>& addresses) {
  for (const auto& address : addresses) {
    const auto at = port_ == 0 ? address : address.with_port(port_);
    try {
      allow_family(socket_, at);
      socket_.bind(at.place().endpoint());
    } catch (const zmq::error_t& error) {
      throw_cannot_listen(field, at, error.num());
    }
    if (port_ != 0) continue;
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    port_ = parse_endpoint(field, endpoint_).port;
  }
}

void ControlSocket::set_up(Role role, const Deadlines& deadlines) {
  socket_.set(zmq::sockopt::tcp_keepalive, 1);
  socket_.set(zmq::sockopt::tcp_keepalive_idle, kKeepaliveIdleSeconds);
  socket_.set(zmq::sockopt::tcp_keepalive_intvl, kKeepaliveIntervalSeconds);
  socket_.set(zmq::sockopt::tcp_keepalive_cnt, kKeepaliveProbes);
  socket_.set(zmq::sockopt::maxmsgsize,
              role == Role::kCoordinator ? kLargestOfSiteBytes : kLargestToSiteBytes);
  socket_.set(zmq::sockopt::handshake_ivl, milliseconds(deadlines.connect_seconds));
  if (role == Role::kCoordinator) {
    socket_.set(zmq::sockopt::plain_server, true);
    socket_.set(zmq::sockopt::rcvhwm, kMostWaitingMessages);
    // Messages to sites that are leaving are still delivered. A site that reconnects keeps its id.
    socket_.set(zmq::sockopt::linger, milliseconds(deadlines.leave_seconds));
    // Without it a second connection with a known id would be refused, and a site could not come
    // back.
    socket_.set(zmq::sockopt::router_handover, true);
  } else {
    // The coordinator acknowledges a site's goodbye, so later messages in the queue do not matter.
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::connect_timeout,
                milliseconds(std::min(deadlines.connect_seconds, kConnectSeconds)));
    socket_.set(zmq::sockopt::routing_id, random_routing_id());
    socket_.set(zmq::sockopt::plain_username, kPeerName);
    socket_.set(zmq::sockopt::plain_password, kPeerName);
  }
}

// ZeroMQ tries the address that it has again and again. It is given another one when an attempt has
// failed. What it has queued goes with the connection, and is repeated.
void ControlSocket::follow_addresses(double patience_seconds) {
  note_attempts();
  const auto address = addresses_->next(patience_seconds);
  if (!address || address == dialed_) return;
  if (dialed_) socket_.disconnect(dialed_->place().endpoint());
  dialed_ = address;
  has_lost_ = true;  // and without an address, ZeroMQ has queued nothing
  has_greeted_ = awaits_retry_ = false;
  allow_family(socket_, *address);
  // ZeroMQ asks for a sign of life, and gives up the connection on which none comes. This machine's
  // own connections, as to a secure port, do not fail with a line.
  const bool has_line = !(addresses_->is_fixed() && address->is_loopback());
  socket_.set(zmq::sockopt::heartbeat_ivl, has_line ? milliseconds(kPingSeconds) : 0);
  socket_.set(zmq::sockopt::heartbeat_timeout, has_line ? milliseconds(kSilenceSeconds) : 0);
  socket_.connect(address->place().endpoint());
}

// A connection that has ended is made anew, which begins with a retry as a failed attempt does. One
// that never came to its handshake has failed: who answers there is no coordinator.
void ControlSocket::note_attempts() {
  while (const auto event = next_event()) {
    if (!dialed_ || event->endpoint != dialed_->place().endpoint()) continue;
    if (event->kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      has_greeted_ = true;
      addresses_->succeed(*dialed_);
    } else if (event->kind == ZMQ_EVENT_DISCONNECTED) {
      awaits_retry_ = std::exchange(has_greeted_, false);
      has_lost_ |= awaits_retry_;  // without a handshake no message has left
    } else if (!std::exchange(awaits_retry_, false) && !addresses_->is_fixed()) {
      addresses_->fail(*dialed_, "no coordinator answers there");
    }
  }
}

double ControlSocket::patience_seconds(double timeout_seconds) const {
  return addresses_ && !dialed_ ? std::min(timeout_seconds, kLookUpSeconds) : timeout_seconds;
}

// An event descriptor beside the socket lets other threads end the wait: ZeroMQ's sockets may be
// used by one thread only.
void ControlSocket::wait(double timeout_seconds) {
  std::vector<zmq_pollitem_t> items;
  append_items(items);
  poll(items, patience_seconds(timeout_seconds));
  follow_wait();
}

void ControlSocket::wait_for_any(const std::vector<std::unique_ptr<ControlSocket>>& sockets,
                                 double timeout_seconds) {
  std::vector<zmq_pollitem_t> items;
  for (const auto& socket : sockets) {
    socket->append_items(items);
    timeout_seconds = socket->patience_seconds(timeout_seconds);
  }
  poll(items, timeout_seconds);
  for (const auto& socket : sockets) socket->follow_wait();
}

void ControlSocket::append_items(std::vector<zmq_pollitem_t>& items) {
  items.push_back({nullptr, waker_.fd(), ZMQ_POLLIN, 0});
  for (auto* socket : {&socket_, &handshakes_, &changes_}) {
    if (socket->handle() != nullptr) items.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
  }
}

void ControlSocket::follow_wait() {
  waker_.clear();
  if (addresses_) {
    follow_addresses(0);
  } else {
    answer_handshake();
  }
}

// Takes a peer whose name and password are right. The frames are those of ZAP. ZeroMQ hands the
// site's name on with each message of the connection.
void ControlSocket::answer_handshake() {
  const auto received = receive_from(handshakes_, false);
  if (!received) return;
  const auto& question = received->frames;
  // Version, number of the question, domain, address, identity, mechanism, name, password.
  FARSTEP_CHECK(question.size() == 8, "ZeroMQ asks about a peer in {} frames", question.size());
  const auto site = visitors_ ? visitors_(question[3]) : std::optional(std::string());
  const bool is_peer = site && question[6] == kPeerName && question[7] == kPeerName;
  send_to(handshakes_, {"1.0", question[1], is_peer ? "200" : "400", "", is_peer ? *site : "", ""});
}

void ControlSocket::watch(int events) {
  const int result = ::zmq_socket_monitor(socket_.handle(), kChangesEndpoint, events);
  FARSTEP_CHECK(result == 0, "no monitor of the control socket: {}", zmq_strerror(errno));
  changes_ = zmq::socket_t(context_, zmq::socket_type::pair);
  changes_.connect(kChangesEndpoint);
}

// An event has two frames: its number in two bytes with a value in four, and the endpoint.
std::optional<ControlSocket::Event> ControlSocket::next_event() {
  if (changes_.handle() == nullptr) return std::nullopt;
  auto received = receive_from(changes_, false);
  if (!received) return std::nullopt;
  const auto& head = received->frames.front();
  uint16_t kind = 0;
  int32_t value = 0;
  FARSTEP_CHECK(head.size() == sizeof(kind) + sizeof(value), "an event of ZeroMQ has {} bytes",
                head.size());
  std::memcpy(&kind, head.data(), sizeof(kind));
  std::memcpy(&value, head.data() + sizeof(kind), sizeof(value));
  return Event{.kind = kind, .descriptor = value, .endpoint = std::move(received->frames.back())};
}

std::vector<std::string> ControlSocket::take_broken() {
  std::vector<std::string> broken;
  while (const auto event = next_event()) {
    const auto found = connections_.find(event->descriptor);
    if (found == connections_.end()) continue;
    broken.push_back(std::move(found->second.name));
    connections_.erase(found);
  }
  return broken;
}

std::optional<ControlSocket::Received> ControlSocket::receive() {
  const bool is_coordinator = addresses_ == nullptr;
  newest_ = -1;
  auto received = receive_from(socket_, visitors_ != nullptr, is_coordinator ? &newest_ : nullptr);
  if (!received || newest_ < 0) return received;
  // Only open connections have an entry, so strangers cannot grow the map.
  auto& connection = connections_[newest_];
  const auto& name = received->frames.front();
  if (connection.name != name) connection = {.name = name, .strange_messages = 0};
  return received;
}

void ControlSocket::note_strange_message() {
  const auto found = connections_.find(newest_);
  if (found == connections_.end()) return;
  // Once: what the connection brought before is still received.
  if (++found->second.strange_messages == kMostStrangeMessages) close_connection(newest_);
}

// ZeroMQ owns the descriptor, and may have closed it meanwhile: its number may be another socket's.
// So only a connection of this endpoint is ended, by a copy that stays the same one. At worst it is
// another site's, which connects again.
void ControlSocket::close_connection(int descriptor) const {
  const Socket copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  const auto local = SocketAddress::local_of(copy.fd());
  if (!local || !SocketAddress::remote_of(copy.fd())) return;
  if (local->port() == port_) ::shutdown(copy.fd(), SHUT_RDWR);
}

// Without waiting: the coordinator serves all sites by one thread, and a full queue means that one
// of them has gone. Requests are repeated, so nothing is lost.
void ControlSocket::send(const Frames& frames) {
  send_to(socket_, frames);
}

}  // namespace farstep::wan
