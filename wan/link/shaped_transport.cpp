#include "wan/link/shaped_transport.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "trainer/base/error.h"
#include "trainer/base/mix.h"

namespace farstep {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::size_t kPacketBytes = 1460;
constexpr Seconds kLongestNap{60};
// The inner transport does not say that it died, so whoever waits asks it.
constexpr Seconds kAskAfter{0.05};

// A number of [0, 1) for the n-th packet of a link.
double draw(uint64_t link_seed, uint64_t n) {
  return static_cast<double>(mix(link_seed + n) >> 11) * 0x1p-53;
}

}  // namespace

struct ShapedTransport::Message {
  const int peer;
  const Tag tag;
  const std::span<const std::byte> bytes;
  const double sent_seconds;
  std::size_t left_bytes = 0;
  double arrival_seconds = 0;                 // once all have left
  std::unique_ptr<Transfer> inner = nullptr;  // once it has arrived
  std::exception_ptr failure = nullptr;       // the inner transport refused it

  bool is_over() const { return inner != nullptr || failure != nullptr; }
};

void ShapedTransport::SendingTime::begin(double now_seconds) {
  if (under_way_++ > 0 || now_seconds < until_seconds_) return;
  before_seconds_ += until_seconds_ - began_seconds_;
  began_seconds_ = until_seconds_ = now_seconds;
}

void ShapedTransport::SendingTime::end(double leave_seconds) {
  --under_way_;
  until_seconds_ = std::max(until_seconds_, leave_seconds);
}

double ShapedTransport::SendingTime::seconds(double now_seconds) const {
  const double end_seconds = under_way_ > 0 ? now_seconds : std::min(now_seconds, until_seconds_);
  return before_seconds_ + end_seconds - began_seconds_;
}

class ShapedTransport::Sending : public Transfer {
 public:
  Sending(ShapedTransport& transport, std::shared_ptr<Message> message)
      : transport_(transport), message_(std::move(message)) {}
  ~Sending() override { transport_.give_up(*message_); }

  void wait() override {
    {
      std::unique_lock lock(transport_.mutex_);
      const auto is_over = [&] { return message_->is_over() || transport_.is_dead_; };
      while (!transport_.changed_.wait_for(lock, kAskAfter, is_over)) {
        lock.unlock();
        transport_.throw_if_dead(message_->peer);
        lock.lock();
      }
      if (message_->failure) std::rethrow_exception(message_->failure);
    }
    transport_.throw_if_dead(message_->peer);
    message_->inner->wait();
  }

 private:
  ShapedTransport& transport_;
  const std::shared_ptr<Message> message_;
};

ShapedTransport::ShapedTransport(std::unique_ptr<Transport> inner, const LinkShape& shape,
                                 const Options& options, Clock& clock)
    : inner_(std::move(inner)),
      options_(options),
      clock_(clock),
      links_(static_cast<std::size_t>(inner_->size())) {
  for (auto& link : links_) link.shape = shape;
  thread_ = std::thread([this] { run(); });
}

ShapedTransport::~ShapedTransport() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  due_.notify_all();
  thread_.join();
}

std::unique_ptr<Transfer> ShapedTransport::send(int peer, const Tag& tag,
                                                std::span<const std::byte> bytes) {
  if (bytes.empty()) return inner_->send(peer, tag, bytes);
  throw_if_dead(peer);
  auto message = std::make_shared<Message>(
      Message{.peer = peer, .tag = tag, .bytes = bytes, .sent_seconds = clock_.now_seconds()});
  {
    const std::lock_guard lock(mutex_);
    auto& link = links_[static_cast<std::size_t>(peer)];
    link.leaving.push_back(message);
    link.sending.begin(message->sent_seconds);
    sending_.begin(message->sent_seconds);
    let_leave(message->sent_seconds);  // whom this message finds free is not for the thread to say
  }
  due_.notify_all();
  return std::make_unique<Sending>(*this, std::move(message));
}

std::unique_ptr<Transfer> ShapedTransport::receive(int peer, const Tag& tag,
                                                   std::span<std::byte> bytes) {
  return inner_->receive(peer, tag, bytes);
}

void ShapedTransport::abort(const std::string& site, const std::string& reason) {
  inner_->abort(site, reason);
  {
    const std::lock_guard lock(mutex_);
    is_dead_ = true;
  }
  changed_.notify_all();
}

LinkState ShapedTransport::link(int peer) const {
  auto state = inner_->link(peer);
  const std::lock_guard lock(mutex_);
  const auto& link = links_[static_cast<std::size_t>(peer)];
  state.retransmitted_bytes = link.lost_packets * kPacketBytes;
  state.sending_seconds = link.sending.seconds(clock_.now_seconds());
  state.rtt_seconds = 2 * link.shape.delay_seconds;
  return state;
}

LinkState ShapedTransport::uplink() const {
  auto state = Transport::uplink();
  const std::lock_guard lock(mutex_);
  state.sending_seconds = sending_.seconds(clock_.now_seconds());
  return state;
}

void ShapedTransport::set_shape(int peer, const LinkShape& shape) {
  FARSTEP_CHECK(peer >= 0 && peer < size() && peer != rank(), "no peer with rank {}", peer);
  {
    const std::lock_guard lock(mutex_);
    const double now_seconds = clock_.now_seconds();
    let_leave(now_seconds);
    auto& link = links_[static_cast<std::size_t>(peer)];
    link.shape = shape;
    link.free_seconds = std::max(link.free_seconds, now_seconds);
  }
  due_.notify_all();
}

double ShapedTransport::deliver() {
  const std::lock_guard lock(mutex_);
  return proceed();
}

// Throws what the inner transport died of, if it did; an empty message asks for no more.
void ShapedTransport::throw_if_dead(int peer) {
  inner_->send(peer, {}, {})->wait();
}

void ShapedTransport::give_up(Message& message) {
  std::unique_ptr<Transfer> inner;  // gives up by itself, after the lock
  const std::lock_guard lock(mutex_);
  inner = std::move(message.inner);
  if (inner != nullptr) return;
  die(message.peer, fmt::format("a transfer with {} was given up", site(message.peer)));
}

void ShapedTransport::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const Seconds wait{proceed() - clock_.now_seconds()};
    due_.wait_for(lock, std::min(wait, kLongestNap));
  }
}

// Brings everything up to the present; when there is something to do next.
double ShapedTransport::proceed() {
  const double now_seconds = clock_.now_seconds();
  if (is_dead_) return kNever;
  double next_seconds = let_leave(now_seconds);
  for (int peer = 0; peer < size(); ++peer) {
    auto& link = links_[static_cast<std::size_t>(peer)];
    next_seconds =
        std::min({next_seconds, hand_over(link, now_seconds), check_for_stall(peer, now_seconds)});
  }
  return is_dead_ ? kNever : next_seconds;
}

// Lets all pieces leave whose time has come, in the order of their times; when the next one will.
double ShapedTransport::let_leave(double now_seconds) {
  for (;;) {
    int next = -1;
    double start_seconds = kNever;
    for (int peer = 0; peer < size(); ++peer) {
      const auto& link = links_[static_cast<std::size_t>(peer)];
      if (link.leaving.empty() || link.shape.is_cut) continue;
      const double earliest =
          std::max({uplink_free_seconds_, link.free_seconds, link.leaving.front()->sent_seconds});
      const bool is_next =
          earliest < start_seconds ||
          (earliest == start_seconds && link.turn < links_[static_cast<std::size_t>(next)].turn);
      if (!is_next) continue;
      next = peer;
      start_seconds = earliest;
    }
    if (start_seconds > now_seconds) return start_seconds;
    let_piece_leave(next, start_seconds);
  }
}

void ShapedTransport::let_piece_leave(int peer, double start_seconds) {
  auto& link = links_[static_cast<std::size_t>(peer)];
  const auto message = link.leaving.front();
  const auto bytes = std::min(kPieceBytes, message->bytes.size() - message->left_bytes);
  const double bits = 8.0 * static_cast<double>(bytes);
  const double rate = std::min(options_.uplink_bits_per_second, link.shape.rate_bits_per_second);
  const double again_seconds = lose_packets(peer, bytes) ? 2 * link.shape.delay_seconds : 0;
  uplink_free_seconds_ = start_seconds + bits / options_.uplink_bits_per_second;
  link.free_seconds = start_seconds + bits / rate + again_seconds;
  // Nothing overtakes, even where the delay was shortened.
  link.arrival_seconds =
      std::max(link.arrival_seconds, link.free_seconds + link.shape.delay_seconds);
  link.turn = ++turns_;
  message->left_bytes += bytes;
  if (message->left_bytes < message->bytes.size()) return;
  message->arrival_seconds = link.arrival_seconds;
  link.sending.end(link.free_seconds);
  sending_.end(link.free_seconds);
  link.leaving.pop_front();
  link.arriving.push_back(message);
}

// Whether a piece that leaves loses any of its packets.
bool ShapedTransport::lose_packets(int peer, std::size_t bytes) {
  auto& link = links_[static_cast<std::size_t>(peer)];
  const uint64_t link_seed = mix(mix(options_.seed) + static_cast<uint64_t>(peer));
  const uint64_t end = link.packets + (bytes + kPacketBytes - 1) / kPacketBytes;
  const uint64_t lost_before = link.lost_packets;
  for (; link.packets < end; ++link.packets) {
    if (draw(link_seed, link.packets) < link.shape.loss) ++link.lost_packets;
  }
  return link.lost_packets > lost_before;
}

// Gives the inner transport what has arrived; when the next message will.
double ShapedTransport::hand_over(Link& link, double now_seconds) {
  while (!link.arriving.empty()) {
    const auto message = link.arriving.front();
    if (message->arrival_seconds > now_seconds) return message->arrival_seconds;
    link.arriving.pop_front();
    try {
      message->inner = inner_->send(message->peer, message->tag, message->bytes);
    } catch (...) {
      message->failure = std::current_exception();  // for its wait()
    }
    changed_.notify_all();
  }
  return kNever;
}

// Ends the transport if a cut has held up a message for too long; when it will.
double ShapedTransport::check_for_stall(int peer, double now_seconds) {
  const auto& link = links_[static_cast<std::size_t>(peer)];
  if (!link.shape.is_cut || link.leaving.empty()) return kNever;
  const double stalled_seconds =
      std::max(link.free_seconds, link.leaving.front()->sent_seconds) + options_.stall_seconds;
  if (now_seconds < stalled_seconds) return stalled_seconds;
  die(peer, fmt::format("no byte from {} to {} for {} s: the link is cut", site(rank()), site(peer),
                        options_.stall_seconds));
  return kNever;
}

void ShapedTransport::die(int peer, const std::string& reason) {
  inner_->abort(site(peer), reason);
  is_dead_ = true;
  changed_.notify_all();
}

}  // namespace farstep
