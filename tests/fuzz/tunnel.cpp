// What the other site sends over a tunnel: it has a certificate of the run, but may be broken.

#include <algorithm>

#include "tests/fuzz/fuzz_input.h"
#include "wan/tunnel/tunnel_end.h"

using namespace farstep;

namespace {

constexpr wan::TunnelLimits kLimits{
    .resend_bytes = 4'000, .window_bytes = 1'000, .ack_bytes = 100, .streams = 4};

// Reads what comes, answers with as many bytes, and opens a stream for each one that ends.
class Answerer : public wan::StreamEvents {
 public:
  Answerer() : end(false, kLimits, *this) {}

  void on_open(uint32_t stream, const std::string& name) override {
    FARSTEP_CHECK(wan::is_port_name(name), "{}", name);
    last = stream;
  }
  void on_data(uint32_t stream, std::span<const std::byte> bytes) override {
    FARSTEP_CHECK(bytes.size() <= kLimits.window_bytes, "{} bytes", bytes.size());
    end.consumed(stream, bytes.size());
    const auto count = std::min(bytes.size(), end.room(stream));
    if (count > 0) end.write(stream, bytes.first(count));
  }
  void on_finish(uint32_t stream) override { end.finish(stream); }
  void on_reset(uint32_t /*stream*/) override {
    if (end.is_connected() && !end.is_full()) end.open("gloo");
  }

  wan::TunnelEnd end;
  uint32_t last = 0;
};

// Sends all that the end has to send.
void drain(wan::TunnelEnd& end) {
  while (!end.output().empty()) end.sent(end.output().size());
}

}  // namespace

// Whole inputs, and then the same behind a hello, so that its frames come through.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  for (const bool has_hello : {false, true}) {
    Answerer answerer;
    auto& end = answerer.end;
    end.open("gloo");
    end.begin_connection();
    drain(end);
    const auto hello = encode(wan::Hello{1, 0, 0, 1'000});
    std::vector<std::byte> bytes;
    if (has_hello) bytes = hello;
    bytes.insert(bytes.end(), input.begin(), input.end());
    try {
      for (std::size_t at = 0; at < bytes.size();) {
        const auto room = end.input();
        const auto count = std::min({room.size(), bytes.size() - at, std::size_t{1'000}});
        FARSTEP_CHECK(count > 0, "no room at byte {}", at);
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, room.begin());
        end.received(count);
        drain(end);
        at += count;
      }
      FARSTEP_CHECK(end.streams() <= kLimits.streams, "{} streams", end.streams());
    } catch (const wan::WrongFrame&) {
      end.restart();
      FARSTEP_CHECK(end.streams() == 0 && end.kept_bytes() == 0, "{} bytes", end.kept_bytes());
    }
  }
  return 0;
}
