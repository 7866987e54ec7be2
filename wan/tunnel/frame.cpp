// A frame's kind determines everything else about it, so the rules are one table, and reading
// checks a header against its row.
#include "wan/tunnel/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// Ends with the version of the protocol.
constexpr std::string_view kMagic = "farstep tunnel 1";
constexpr std::size_t kHelloBytes = kMagic.size() + 4 * sizeof(uint64_t);
// Several frames a read, and seldom a move of a frame's beginning.
constexpr std::size_t kBufferBytes = 262'144;

// What a frame of a kind must look like.
struct Shape {
  FrameKind kind;
  std::size_t least, most;  // of the payload
  bool has_stream, is_numbered;
};

constexpr std::array kShapes{
    Shape{FrameKind::kHello, kHelloBytes, kHelloBytes, false, false},
    Shape{FrameKind::kOpen, 1, kLongestPortName, true, true},
    Shape{FrameKind::kData, 1, kMostPayload, true, true},
    Shape{FrameKind::kFinish, 0, 0, true, true},
    Shape{FrameKind::kReset, 0, 0, true, true},
    Shape{FrameKind::kCredit, sizeof(uint64_t), sizeof(uint64_t), true, true},
    Shape{FrameKind::kAck, 0, 0, false, false},
    Shape{FrameKind::kKeepAlive, 0, 0, false, false},
};

const Shape* shape_of(FrameKind kind) {
  const auto* shape =
      std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& s) { return s.kind == kind; });
  return shape == kShapes.end() ? nullptr : shape;
}

// Byte by byte, so that the order on the wire does not depend on the processor.
void put(std::byte* to, uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(number >> (8 * i));
}

uint64_t get(const std::byte* from, std::size_t bytes) {
  uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) number |= std::to_integer<uint64_t>(from[i]) << (8 * i);
  return number;
}

}  // namespace

bool is_numbered(FrameKind kind) {
  const auto* shape = shape_of(kind);
  return shape != nullptr && shape->is_numbered;
}

std::vector<std::byte> encode(const Frame& frame) {
  FARSTEP_CHECK(frame.payload.size() <= kMostPayload, "a payload of {}", frame.payload.size());
  std::vector<std::byte> bytes;
  bytes.reserve(kFrameHeaderBytes + frame.payload.size());
  bytes.resize(kFrameHeaderBytes);
  bytes[0] = static_cast<std::byte>(frame.kind);
  put(&bytes[1], frame.payload.size(), 3);
  put(&bytes[4], frame.stream, 4);
  put(&bytes[8], frame.sequence, 8);
  bytes.insert(bytes.end(), frame.payload.begin(), frame.payload.end());
  return bytes;
}

std::vector<std::byte> encode(const Hello& hello) {
  std::array<std::byte, kHelloBytes> payload{};
  std::memcpy(payload.data(), kMagic.data(), kMagic.size());
  auto* to = payload.data() + kMagic.size();
  for (const uint64_t number : {hello.tunnel, hello.known, hello.next, hello.window_bytes}) {
    put(to, number, sizeof(number));
    to += sizeof(number);
  }
  return encode({.kind = FrameKind::kHello, .payload = payload});
}

std::vector<std::byte> encode_credit(uint32_t stream, uint64_t sequence, uint64_t bytes) {
  std::array<std::byte, sizeof(bytes)> payload{};
  put(payload.data(), bytes, payload.size());
  return encode({FrameKind::kCredit, stream, sequence, payload});
}

Hello read_hello(const Frame& frame) {
  const auto* from = frame.payload.data();
  if (std::memcmp(from, kMagic.data(), kMagic.size()) != 0) {
    throw WrongFrame("its hello is of another version");
  }
  from += kMagic.size();
  Hello hello{get(from, 8), get(from + 8, 8), get(from + 16, 8), get(from + 24, 8)};
  // Zero means "not known" in the other fields.
  if (hello.tunnel == 0) throw WrongFrame("its hello has no tunnel id");
  return hello;
}

std::string read_port_name(const Frame& frame) {
  std::string name(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size());
  if (!is_port_name(name)) throw WrongFrame("a stream leads to a port without a proper name");
  return name;
}

uint64_t read_credit(const Frame& frame) {
  return get(frame.payload.data(), sizeof(uint64_t));
}

bool is_port_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestPortName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-_./").find(c) != std::string_view::npos;
         });
}

FrameReader::FrameReader() : buffer_(kBufferBytes) {}

std::span<std::byte> FrameReader::room() {
  // An empty buffer starts again at its beginning for free; only a part of a frame has to move.
  if (begin_ == end_) begin_ = end_ = 0;
  // The rest of a frame must fit behind its beginning.
  if (buffer_.size() - begin_ < kFrameHeaderBytes + kMostPayload) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(buffer_).subspan(end_);
}

void FrameReader::filled(std::size_t count) {
  FARSTEP_CHECK(count <= buffer_.size() - end_, "{} bytes received, room for {}", count,
                buffer_.size() - end_);
  end_ += count;
}

std::optional<Frame> FrameReader::next() {
  if (end_ - begin_ < kFrameHeaderBytes) return std::nullopt;
  const auto* header = buffer_.data() + begin_;
  Frame frame{.kind = static_cast<FrameKind>(header[0]),
              .stream = static_cast<uint32_t>(get(header + 4, 4)),
              .sequence = get(header + 8, 8)};
  // The header alone decides what is wrong, before the payload has come: a peer cannot make this
  // end wait for bytes that it would refuse.
  const auto* shape = shape_of(frame.kind);
  if (shape == nullptr) {
    throw WrongFrame(
        fmt::format("a frame of the unknown kind {}", std::to_integer<int>(header[0])));
  }
  const auto length = static_cast<std::size_t>(get(header + 1, 3));
  if (length < shape->least || length > shape->most) {
    throw WrongFrame(fmt::format("a frame of kind {} with a payload of {} bytes",
                                 std::to_integer<int>(header[0]), length));
  }
  if (shape->has_stream != (frame.stream != 0)) {
    throw WrongFrame(fmt::format("a frame of kind {} with stream {}",
                                 std::to_integer<int>(header[0]), frame.stream));
  }
  if (!shape->is_numbered && frame.kind != FrameKind::kAck && frame.sequence != 0) {
    throw WrongFrame(
        fmt::format("a frame of kind {} with a number", std::to_integer<int>(header[0])));
  }
  if (end_ - begin_ < kFrameHeaderBytes + length) return std::nullopt;
  frame.payload = std::span<const std::byte>(header + kFrameHeaderBytes, length);
  begin_ += kFrameHeaderBytes + length;
  return frame;
}

}  // namespace farstep::wan
