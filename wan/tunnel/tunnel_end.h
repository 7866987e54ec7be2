// One end of a tunnel: full-duplex streams of bytes to the other site, which live on when the
// connection below is cut and made again. A state machine without sockets, threads and clock.
//
// Each numbered frame is kept until the other end acknowledges it. When a connection begins, both
// ends send a hello with the number that they expect next, and then all frames from there: no byte
// is lost, none comes twice. A tunnel id, drawn anew for each TunnelEnd, tells an end that comes
// back from one that begins anew.
//
// A stream's writer may send as many bytes as the reader has room for, its window. So received
// bytes never wait in the tunnel, and a stream that nobody reads does not hold up the others.
//
// Memory: kept frames have at most `resend_bytes` of data, and a few bytes a stream. One thread at
// a time uses it. received() calls `StreamEvents`, which may call any method except received().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wan/tunnel/frame.h"

namespace farstep::wan {

struct TunnelLimits {
  // Bounds the speed over a long way: so many bytes a round trip, of all streams and of one.
  std::size_t resend_bytes = std::size_t{16} << 20;
  std::size_t window_bytes = std::size_t{16} << 20;
  // Received bytes after which an ack goes out at once. Well below the peer's resend_bytes.
  std::size_t ack_bytes = std::size_t{256} << 10;
  // Open at once; one that the peer opens beyond that is reset.
  std::size_t streams = 256;
};

// What the other end does with streams.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // A new stream leads to the port `name` of this side.
  virtual void on_open(uint32_t stream, const std::string& name) = 0;
  // Bytes have come; consumed() must follow when they have left.
  virtual void on_data(uint32_t stream, std::span<const std::byte> bytes) = 0;
  // No more bytes come.
  virtual void on_finish(uint32_t stream) = 0;
  // The stream is over both ways, and does not exist any more.
  virtual void on_reset(uint32_t stream) = 0;
};

class TunnelEnd {
 public:
  // Exactly one of both ends has `has_odd_streams`. `events` must outlive it.
  TunnelEnd(bool has_odd_streams, TunnelLimits limits, StreamEvents& events);

  // The connection below. A new one begins with begin_connection(), also in place of the former.
  void begin_connection();
  void end_connection();
  // Whether the other end's hello has come over this connection.
  bool is_connected() const { return state_ == State::kConnected; }
  // Returns the bytes to send next, empty if there are none. They stay the same until sent().
  std::span<const std::byte> output();
  // The first `count` bytes of output() have been sent.
  void sent(std::size_t count);
  // Returns where received bytes go.
  std::span<std::byte> input() { return reader_.room(); }
  // `count` bytes have come. Throws WrongFrame; then only restart() may follow.
  void received(std::size_t count);
  // Whether frames have come that are not acknowledged yet; acknowledge() does it.
  bool owes_ack() const { return unacknowledged_bytes_ > 0 && !is_ack_due_; }
  void acknowledge();
  void keep_alive();

  // Opens a stream to the port `name` of the other side.
  uint32_t open(const std::string& name);
  // Returns how many bytes write() takes now; 0 for a stream that is over.
  std::size_t room(uint32_t stream) const;
  // Sends at most room() bytes.
  void write(uint32_t stream, std::span<const std::byte> bytes);
  // These do nothing to a stream that is over. No more write() follows finish().
  void finish(uint32_t stream);
  void reset(uint32_t stream);
  void consumed(uint32_t stream, std::size_t bytes);

  // Resets all streams, and goes on as a new end: the other one then resets its streams too.
  void restart();

  std::size_t streams() const { return streams_.size(); }
  bool is_full() const { return streams_.size() >= limits_.streams; }
  // Bytes of frames that are not acknowledged.
  std::size_t kept_bytes() const { return kept_bytes_; }

 private:
  enum class State { kNone, kGreeting, kConnected };
  enum class Piece { kNone, kOwn, kNumbered };

  struct Stream {
    uint64_t credit = 0;             // bytes that this side may send
    uint64_t granted = 0;            // bytes that the other side may send
    std::size_t consumed_bytes = 0;  // not granted again yet
    bool is_finished_here = false, is_finished_there = false;
  };

  void choose_piece();
  void add(std::vector<std::byte> frame);
  uint64_t next_sequence() const { return first_kept_ + kept_.size(); }
  void handle(const Frame& frame);
  void greet(const Hello& hello);
  void drop_before(uint64_t sequence, uint64_t end);
  void open_from_peer(const Frame& frame);
  void handle_stream(const Frame& frame);
  void take_data(Stream& stream, const Frame& frame);
  void erase_if_over(uint32_t stream);
  void forget_streams();
  // How many streams the opener of this one had opened with it; the id of the n-th one is odd,
  // 2 n - 1, or even, 2 n.
  static uint32_t number_of(uint32_t stream) { return stream / 2 + stream % 2; }
  bool is_own(uint32_t stream) const { return (stream % 2 == 1) == has_odd_streams_; }

  const bool has_odd_streams_;
  const TunnelLimits limits_;
  StreamEvents& events_;
  uint64_t id_;
  std::optional<uint64_t> peer_id_;
  uint64_t peer_window_ = 0;

  State state_ = State::kNone;
  FrameReader reader_;
  uint64_t expected_ = 0;  // the next numbered frame of the peer
  std::size_t unacknowledged_bytes_ = 0;
  bool is_hello_due_ = false, is_ack_due_ = false, is_keep_alive_due_ = false;

  std::deque<std::vector<std::byte>> kept_;  // the first one has the number first_kept_
  uint64_t first_kept_ = 0;
  std::size_t kept_bytes_ = 0;
  uint64_t next_to_send_ = 0;  // over this connection
  uint64_t sent_end_ = 0;      // behind the last frame that was sent over any connection
  Piece piece_ = Piece::kNone;
  std::vector<std::byte> own_piece_;  // hello, ack or keep-alive
  std::size_t piece_sent_ = 0;

  std::map<uint32_t, Stream> streams_;
  uint32_t opened_here_ = 0, opened_there_ = 0;  // streams since the tunnel began
};

}  // namespace farstep::wan
