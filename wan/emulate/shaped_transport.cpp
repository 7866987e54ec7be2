// Time is computed, not measured: wan/link gives the arrival of every message when it leaves. The
// thread only hands messages over when they are due. So a thread that wakes late delays one message
// and shifts no later one.
#include "wan/emulate/shaped_transport.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kNever = Uplink::kNever;
// Bounds only an idle thread's sleep; every event wakes it.
constexpr Seconds kLongestNap{60};
// The inner transport does not report its failure, so a waiting thread asks it. A twentieth of a
// second is far below every deadline and costs 20 calls a second.
constexpr Seconds kAskAfter{0.05};

}  // namespace

struct ShapedTransport::Message {
  const int peer;
  const Tag tag;
  const std::span<const std::byte> bytes;
  const double sent_seconds;
  std::size_t left_bytes = 0;
  double arrival_seconds = 0;                 // once all bytes have left
  std::unique_ptr<Transfer> inner = nullptr;  // once it has arrived
  std::exception_ptr failure = nullptr;       // the inner transport refused it

  bool is_over() const { return inner != nullptr || failure != nullptr; }
};

// Messages overlap, so their times are joined instead of added.
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
        // The inner transport may take its time, and the delivering thread needs the lock.
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
      uplink_(options.uplink_bits_per_second, static_cast<std::size_t>(inner_->size()), shape,
              options.seed),
      links_(static_cast<std::size_t>(inner_->size())),
      ready_seconds_(links_.size(), kNever) {
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
  // An empty message carries no bytes to delay.
  if (bytes.empty()) return inner_->send(peer, tag, bytes);
  throw_if_dead(peer);
  // The message outlives the transfer that the caller holds: it may be under way when that is given
  // up.
  auto message = std::make_shared<Message>(
      Message{.peer = peer, .tag = tag, .bytes = bytes, .sent_seconds = clock_.now_seconds()});
  {
    const std::lock_guard lock(mutex_);
    auto& link = links_[static_cast<std::size_t>(peer)];
    link.leaving.push_back(message);
    note_ready(static_cast<std::size_t>(peer));
    link.sending.begin(message->sent_seconds);
    sending_.begin(message->sent_seconds);
    // In the sender's thread: otherwise the time at which the delivering thread wakes would decide
    // whose piece is next.
    let_leave(message->sent_seconds);
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
  const auto index = static_cast<std::size_t>(peer);
  state.retransmitted_bytes = uplink_.lost_packets(index) * Uplink::kPacketBytes;
  state.sending_seconds = links_[index].sending.seconds(clock_.now_seconds());
  state.rtt_seconds = state.least_rtt_seconds = 2 * uplink_.shape(index).delay_seconds;
  return state;
}

LinkState ShapedTransport::uplink() const {
  auto state = Transport::uplink();
  const std::lock_guard lock(mutex_);
  // The links' times overlap in part, so neither their sum nor the longest of them is the uplink's.
  state.sending_seconds = sending_.seconds(clock_.now_seconds());
  return state;
}

void ShapedTransport::set_shape(int peer, const LinkShape& shape) {
  FARSTEP_CHECK(peer >= 0 && peer < size() && peer != rank(), "no peer with rank {}", peer);
  {
    const std::lock_guard lock(mutex_);
    const double now_seconds = clock_.now_seconds();
    // What was due before the change leaves by the old shape.
    let_leave(now_seconds);
    uplink_.set_shape(static_cast<std::size_t>(peer), shape, now_seconds);
  }
  due_.notify_all();
}

double ShapedTransport::deliver() {
  const std::lock_guard lock(mutex_);
  return proceed();
}

// Throws the inner transport's failure, if it has failed; an empty send reports it.
void ShapedTransport::throw_if_dead(int peer) {
  // The interface has no question for this.
  inner_->send(peer, {}, {})->wait();
}

void ShapedTransport::give_up(Message& message) {
  std::unique_ptr<Transfer> inner;  // destroyed, and so given up, after the lock
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

// Processes everything that is due by now. Returns when the next event is due.
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

// Sends all pieces that are due, in the order of their times. Returns when the next one is due.
double ShapedTransport::let_leave(double now_seconds) {
  for (;;) {
    const auto turn = uplink_.next(ready_seconds_);
    if (turn.start_seconds > now_seconds) return turn.start_seconds;
    let_piece_leave(turn);
  }
}

void ShapedTransport::let_piece_leave(const Uplink::Turn& turn) {
  auto& link = links_[turn.link];
  // The last byte's arrival is the message's: the pieces before it only use the line.
  const auto message = link.leaving.front();
  const auto bytes = std::min(Uplink::kPieceBytes, message->bytes.size() - message->left_bytes);
  const auto transit = uplink_.send(turn, bytes);
  message->left_bytes += bytes;
  if (message->left_bytes < message->bytes.size()) return;
  message->arrival_seconds = transit.arrive_seconds;
  link.sending.end(transit.leave_seconds);
  sending_.end(transit.leave_seconds);
  link.leaving.pop_front();
  note_ready(turn.link);
  link.arriving.push_back(message);
}

// Called when another message becomes the first to leave.
void ShapedTransport::note_ready(std::size_t peer) {
  const auto& leaving = links_[peer].leaving;
  ready_seconds_[peer] = leaving.empty() ? kNever : leaving.front()->sent_seconds;
}

// Passes the messages that have arrived to the inner transport. Returns when the next one arrives.
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

// Ends the transport if a cut link has delayed a message for too long. Returns when that would be.
double ShapedTransport::check_for_stall(int peer, double now_seconds) {
  const auto index = static_cast<std::size_t>(peer);
  if (!uplink_.shape(index).is_cut || links_[index].leaving.empty()) return kNever;
  const double stalled_seconds =
      uplink_.start_seconds(index, ready_seconds_[index]) + options_.stall_seconds;
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

}  // namespace farstep::wan
