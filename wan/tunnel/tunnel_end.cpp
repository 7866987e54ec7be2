// Resending, as TCP does it, but across connections. Frames are numbered and kept until the peer
// has acknowledged them. After a cut both ends say what they expect next, and continue there. An id
// for each end tells a peer that was cut off from one that begins anew and knows no stream.
#include "wan/tunnel/tunnel_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// Credits of all streams together never come near the end of 64 bits.
constexpr uint64_t kMostCredit = uint64_t{1} << 40;

// One end numbers its streams oddly, the other evenly. So twice as many must fit into 32 bits.
constexpr uint32_t kMostStreams = uint32_t{1} << 30;
// Frames without data are kept beyond resend_bytes: few, unless the peer acknowledges nothing.
constexpr std::size_t kSpareBytes = std::size_t{1} << 20;

uint64_t new_id() {
  std::random_device random;
  uint64_t id = 0;
  // Zero stands for "not known" in a hello.
  while (id == 0) id = uint64_t{random()} << 32 | random();
  return id;
}

}  // namespace

TunnelEnd::TunnelEnd(bool has_odd_streams, TunnelLimits limits, StreamEvents& events)
    : has_odd_streams_(has_odd_streams), limits_(limits), events_(events), id_(new_id()) {
  FARSTEP_CHECK(limits.resend_bytes > 0 && limits.window_bytes > 0 && limits.streams > 0 &&
                    limits.window_bytes <= kMostCredit,
                "limits of a tunnel");
}

void TunnelEnd::begin_connection() {
  end_connection();
  // Nothing but hellos until the peer's has come: only then is it known which frames it has.
  state_ = State::kGreeting;
  is_hello_due_ = true;
}

void TunnelEnd::end_connection() {
  state_ = State::kNone;
  reader_.clear();
  is_hello_due_ = is_ack_due_ = is_keep_alive_due_ = false;
  piece_ = Piece::kNone;
  piece_sent_ = 0;
}

// A piece that has begun is sent to its end, and so is one that was offered: TLS wants a send that
// did not fit to be repeated with the same bytes.
void TunnelEnd::choose_piece() {
  if (std::exchange(is_hello_due_, false)) {
    own_piece_ = encode(Hello{id_, peer_id_.value_or(0), expected_, limits_.window_bytes});
    unacknowledged_bytes_ = 0;
    piece_ = Piece::kOwn;
  } else if (state_ != State::kConnected) {
    return;
  } else if (std::exchange(is_ack_due_, false)) {
    // Before data: the peer may have stopped sending until it comes.
    own_piece_ = encode({.kind = FrameKind::kAck, .sequence = expected_});
    unacknowledged_bytes_ = 0;
    piece_ = Piece::kOwn;
  } else if (next_to_send_ < next_sequence()) {
    piece_ = Piece::kNumbered;
  } else if (std::exchange(is_keep_alive_due_, false)) {
    own_piece_ = encode({.kind = FrameKind::kKeepAlive});
    piece_ = Piece::kOwn;
  }
}

std::span<const std::byte> TunnelEnd::output() {
  if (piece_ == Piece::kNone) choose_piece();
  if (piece_ == Piece::kNone) return {};
  const auto& piece = piece_ == Piece::kOwn ? own_piece_ : kept_[next_to_send_ - first_kept_];
  return std::span(piece).subspan(piece_sent_);
}

void TunnelEnd::sent(std::size_t count) {
  piece_sent_ += count;
  // A part has been sent; the rest goes with the next call.
  if (!output().empty()) return;
  if (piece_ == Piece::kNumbered) {
    ++next_to_send_;
    sent_end_ = std::max(sent_end_, next_to_send_);
    is_keep_alive_due_ = false;  // the frame did as well
  }
  piece_ = Piece::kNone;
  piece_sent_ = 0;
}

void TunnelEnd::received(std::size_t count) {
  reader_.filled(count);
  while (const auto frame = reader_.next()) handle(*frame);
}

void TunnelEnd::handle(const Frame& frame) {
  if ((frame.kind == FrameKind::kHello) != (state_ == State::kGreeting)) {
    throw WrongFrame("a hello is not the first frame, or is not the only one");
  }
  if (frame.kind == FrameKind::kHello) return greet(read_hello(frame));
  if (frame.kind == FrameKind::kAck) return drop_before(frame.sequence, next_to_send_);
  if (!is_numbered(frame.kind)) return;
  // A gap cannot happen on one connection, so the peer is broken.
  if (frame.sequence != expected_) {
    throw WrongFrame(fmt::format("frame {} came in place of {}", frame.sequence, expected_));
  }
  // Answers to the peer's frames are kept as well, so it could otherwise fill this end's memory.
  if (kept_bytes_ > 2 * limits_.resend_bytes + kSpareBytes) {
    throw WrongFrame("it acknowledges no frame");
  }
  ++expected_;
  unacknowledged_bytes_ += kFrameHeaderBytes + frame.payload.size();
  if (unacknowledged_bytes_ >= limits_.ack_bytes) acknowledge();
  if (frame.kind == FrameKind::kOpen) return open_from_peer(frame);
  handle_stream(frame);
}

// What the peer expects counts only if it knows this end: one that has just begun expects 0.
void TunnelEnd::greet(const Hello& hello) {
  if (hello.window_bytes > kMostCredit) throw WrongFrame("its window is too large");
  // The peer's process began anew. It knows none of the streams, so they end here too.
  if (peer_id_ && *peer_id_ != hello.tunnel) {
    forget_streams();
    peer_id_.reset();
  }
  drop_before(hello.known == id_ ? hello.next : 0, sent_end_);
  if (!peer_id_) {
    peer_id_ = hello.tunnel;
    peer_window_ = hello.window_bytes;
    // Streams that were opened before the first connection could not know the peer's window.
    for (auto& [id, stream] : streams_) stream.credit += peer_window_;
  }
  // Everything that is kept goes out again: nobody knows what of it has arrived.
  next_to_send_ = first_kept_;
  state_ = State::kConnected;
}

// `end` is behind the last frame that the peer can have received.
void TunnelEnd::drop_before(uint64_t sequence, uint64_t end) {
  if (sequence < first_kept_ || sequence > end) {
    throw WrongFrame(
        fmt::format("it expects frame {}, not one of {} to {}", sequence, first_kept_, end));
  }
  for (; first_kept_ < sequence; ++first_kept_) {
    kept_bytes_ -= kept_.front().size();
    kept_.pop_front();
  }
}

void TunnelEnd::open_from_peer(const Frame& frame) {
  const auto name = read_port_name(frame);
  if (is_own(frame.stream) || number_of(frame.stream) != opened_there_ + 1) {
    throw WrongFrame(fmt::format("stream {} opens out of turn", frame.stream));
  }
  ++opened_there_;
  // The stream counts as opened, so that the numbers of both ends agree.
  if (is_full()) {
    add(encode({FrameKind::kReset, frame.stream, next_sequence(), {}}));
    return;
  }
  streams_[frame.stream] = {.credit = peer_window_, .granted = limits_.window_bytes};
  events_.on_open(frame.stream, name);
}

// Frames of a stream that this side has reset may still be under way.
void TunnelEnd::handle_stream(const Frame& frame) {
  if (number_of(frame.stream) > (is_own(frame.stream) ? opened_here_ : opened_there_)) {
    throw WrongFrame(fmt::format("stream {} was never opened", frame.stream));
  }
  const auto found = streams_.find(frame.stream);
  if (found == streams_.end()) return;
  auto& stream = found->second;
  if (frame.kind == FrameKind::kData) {
    take_data(stream, frame);
  } else if (frame.kind == FrameKind::kFinish) {
    if (stream.is_finished_there) throw WrongFrame("a stream ends twice");
    stream.is_finished_there = true;
    erase_if_over(frame.stream);
    events_.on_finish(frame.stream);
  } else if (frame.kind == FrameKind::kCredit) {
    stream.credit += read_credit(frame);
    if (stream.credit > 2 * kMostCredit || read_credit(frame) > kMostCredit) {
      throw WrongFrame("a stream has too much credit");
    }
  } else {
    // Erased first: the event may open another stream.
    streams_.erase(found);
    events_.on_reset(frame.stream);
  }
}

void TunnelEnd::take_data(Stream& stream, const Frame& frame) {
  if (stream.is_finished_there) throw WrongFrame("data comes after a stream's end");
  if (frame.payload.size() > stream.granted) throw WrongFrame("a stream overruns its window");
  // Room comes back with consumed(), when the local connection has taken the bytes.
  stream.granted -= frame.payload.size();
  events_.on_data(frame.stream, frame.payload);
}

void TunnelEnd::acknowledge() {
  is_ack_due_ = true;
}

void TunnelEnd::keep_alive() {
  is_keep_alive_due_ = true;
}

void TunnelEnd::add(std::vector<std::byte> frame) {
  kept_bytes_ += frame.size();
  kept_.push_back(std::move(frame));
}

uint32_t TunnelEnd::open(const std::string& name) {
  FARSTEP_CHECK(is_port_name(name), "a stream to the port \"{}\"", name);
  FARSTEP_CHECK(!is_full(), "more than {} streams", limits_.streams);
  FARSTEP_CHECK(opened_here_ < kMostStreams, "no stream id is left");
  ++opened_here_;
  const uint32_t stream = 2 * opened_here_ - (has_odd_streams_ ? 1 : 0);
  streams_[stream] = {.credit = peer_window_, .granted = limits_.window_bytes};
  add(encode({FrameKind::kOpen, stream, next_sequence(), std::as_bytes(std::span(name))}));
  return stream;
}

std::size_t TunnelEnd::room(uint32_t stream) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.is_finished_here) return 0;
  const auto kept = kept_bytes_ + kFrameHeaderBytes;
  if (kept >= limits_.resend_bytes) return 0;
  // The least of what may be kept, what fits one frame, and what the peer has room for.
  return std::min(
      {limits_.resend_bytes - kept, kMostPayload, static_cast<std::size_t>(found->second.credit)});
}

void TunnelEnd::write(uint32_t stream, std::span<const std::byte> bytes) {
  FARSTEP_CHECK(!bytes.empty() && bytes.size() <= room(stream), "{} bytes, room for {}",
                bytes.size(), room(stream));
  streams_.at(stream).credit -= bytes.size();
  add(encode({FrameKind::kData, stream, next_sequence(), bytes}));
}

void TunnelEnd::finish(uint32_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.is_finished_here) return;
  found->second.is_finished_here = true;
  add(encode({FrameKind::kFinish, stream, next_sequence(), {}}));
  erase_if_over(stream);
}

void TunnelEnd::reset(uint32_t stream) {
  if (streams_.erase(stream) == 0) return;
  add(encode({FrameKind::kReset, stream, next_sequence(), {}}));
}

// A quarter: few frames, and the writer hears of room long before it has none.
void TunnelEnd::consumed(uint32_t stream, std::size_t bytes) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.is_finished_there) return;
  auto& consumed = found->second.consumed_bytes;
  consumed += bytes;
  if (consumed < std::max<std::size_t>(limits_.window_bytes / 4, 1)) return;
  found->second.granted += consumed;
  add(encode_credit(stream, next_sequence(), consumed));
  consumed = 0;
}

void TunnelEnd::erase_if_over(uint32_t stream) {
  const auto& found = streams_.at(stream);
  if (found.is_finished_here && found.is_finished_there) streams_.erase(stream);
}

void TunnelEnd::forget_streams() {
  // Emptied first, since on_reset() may call back.
  const auto streams = std::exchange(streams_, {});
  kept_.clear();
  kept_bytes_ = 0;
  first_kept_ = next_to_send_ = sent_end_ = 0;
  expected_ = 0;
  unacknowledged_bytes_ = 0;
  opened_here_ = opened_there_ = 0;
  for (const auto& [id, stream] : streams) events_.on_reset(id);
}

// A new id makes the peer forget the streams too, once it hears of it.
void TunnelEnd::restart() {
  end_connection();
  id_ = new_id();
  peer_id_.reset();
  peer_window_ = 0;
  forget_streams();
}

}  // namespace farstep::wan
