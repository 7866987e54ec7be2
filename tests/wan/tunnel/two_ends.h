// Two ends of a tunnel, joined by bytes in memory that can be cut at any place.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "wan/tunnel/tunnel_end.h"

namespace farstep::wan {

using Bytes = std::vector<std::byte>;

// An end whose reader keeps all that comes, and takes it when read() says so.
class ReadEnd : public StreamEvents {
 public:
  ReadEnd(bool has_odd_streams, TunnelLimits limits) : end(has_odd_streams, limits, *this) {}

  struct Read {
    std::string name;  // of a stream that the other end opened
    Bytes bytes;
    std::size_t unread = 0;  // of these; consumed() follows
    bool is_finished = false, is_reset = false;
  };

  void on_open(uint32_t stream, const std::string& name) override { streams[stream].name = name; }
  void on_data(uint32_t stream, std::span<const std::byte> bytes) override {
    auto& read = streams[stream];
    read.bytes.insert(read.bytes.end(), bytes.begin(), bytes.end());
    read.unread += bytes.size();
  }
  void on_finish(uint32_t stream) override { streams[stream].is_finished = true; }
  void on_reset(uint32_t stream) override { streams[stream].is_reset = true; }

  // Takes what is unread of the stream.
  void read(uint32_t stream) { end.consumed(stream, std::exchange(streams[stream].unread, 0)); }

  std::map<uint32_t, Read> streams;
  TunnelEnd end;
};

// Moves up to `most` bytes from one end to the other; returns how many.
inline std::size_t move_bytes(TunnelEnd& from, TunnelEnd& to, std::size_t most) {
  std::size_t moved = 0;
  while (moved < most) {
    const auto output = from.output();
    const auto input = to.input();
    const auto count = std::min({output.size(), input.size(), most - moved});
    if (count == 0) break;
    std::copy_n(output.begin(), count, input.begin());
    from.sent(count);
    to.received(count);
    moved += count;
  }
  return moved;
}

// Moves all bytes that there are, in both directions.
inline void settle(TunnelEnd& a, TunnelEnd& b) {
  constexpr auto kAll = std::size_t(-1);
  while (move_bytes(a, b, kAll) + move_bytes(b, a, kAll) > 0) {
  }
}

inline void connect(TunnelEnd& a, TunnelEnd& b) {
  a.begin_connection();
  b.begin_connection();
}

inline Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace farstep::wan
