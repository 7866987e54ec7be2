// What travels between the two ends of a tunnel: frames, each with a header of 16 bytes.
//
//   byte 0      kind
//   bytes 1-3   length of the payload
//   bytes 4-7   stream, 0 in frames of the tunnel itself
//   bytes 8-15  sequence number; in an ack, the first number that is not acknowledged
//
// All numbers are little-endian. Open, data, finish, reset and credit are numbered from 0, without
// a gap, and sent again after a cut. Hello, ack and keep-alive belong to one connection.
//
// The peer has shown its certificate, but may be broken: reading checks every field before it is
// used, and takes no memory. One thread at a time uses a FrameReader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace farstep::wan {

enum class FrameKind : uint8_t {
  kHello = 1,      // the first frame of a connection
  kOpen = 2,       // payload: the name of the port that the stream leads to
  kData = 3,       // payload: 1 to kMostPayload bytes of the stream
  kFinish = 4,     // no more data comes on the stream from this side
  kReset = 5,      // the stream is over both ways
  kCredit = 6,     // payload: how many more bytes the other side may send on the stream, 8 bytes
  kAck = 7,        // all numbered frames before `sequence` have come
  kKeepAlive = 8,  // this side is there
};

// Whether frames of the kind have a number, and are sent again after a cut.
bool is_numbered(FrameKind kind);

inline constexpr std::size_t kFrameHeaderBytes = 16;
// A whole frame is 64 KiB: four TLS records.
inline constexpr std::size_t kMostPayload = 65'536 - kFrameHeaderBytes;
inline constexpr std::size_t kLongestPortName = 64;

struct Frame {
  FrameKind kind = FrameKind::kKeepAlive;
  uint32_t stream = 0;
  uint64_t sequence = 0;
  std::span<const std::byte> payload = {};
};

// The payload of the first frame of a connection.
struct Hello {
  uint64_t tunnel = 0;        // the sender's tunnel id
  uint64_t known = 0;         // the receiver's, as the sender knows it; 0 if it does not
  uint64_t next = 0;          // the sequence number that the sender expects next
  uint64_t window_bytes = 0;  // how many bytes of a new stream the receiver may send
  bool operator==(const Hello&) const = default;
};

// A peer sent what no end of a tunnel sends.
class WrongFrame : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the frame as bytes. Throws InternalError for a payload that is too long.
std::vector<std::byte> encode(const Frame& frame);
std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode_credit(uint32_t stream, uint64_t sequence, uint64_t bytes);

// Read payloads of frames that a FrameReader returned. Throw WrongFrame.
Hello read_hello(const Frame& frame);
std::string read_port_name(const Frame& frame);
uint64_t read_credit(const Frame& frame);

// Whether a port can have this name: 1 to 64 letters, digits, "-", "_", "." and "/".
bool is_port_name(std::string_view name);

// Cuts received bytes into frames, in a buffer of fixed size.
class FrameReader {
 public:
  FrameReader();
  // Returns where the next bytes go: at least one byte once next() has returned nullopt. Ends the
  // use of all frames of next().
  std::span<std::byte> room();
  // Takes the first `count` bytes of room() as received.
  void filled(std::size_t count);
  // Returns the next whole frame; nullopt if its rest has not come. Throws WrongFrame for a header
  // with a field that is wrong for its kind.
  std::optional<Frame> next();
  // Forgets all bytes, for a new connection.
  void clear() { begin_ = end_ = 0; }

 private:
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the bytes that are not read yet
};

}  // namespace farstep::wan
