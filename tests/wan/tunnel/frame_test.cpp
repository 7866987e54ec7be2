#include "wan/tunnel/frame.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/wan/tunnel/two_ends.h"
#include "trainer/base/error.h"

namespace farstep::wan {
namespace {

using Catch::Contains;

void feed(FrameReader& reader, std::span<const std::byte> bytes) {
  REQUIRE(reader.room().size() >= bytes.size());
  std::copy(bytes.begin(), bytes.end(), reader.room().begin());
  reader.filled(bytes.size());
}

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST_CASE("frames come out as they went in, however their bytes are cut") {
  const Bytes most(kMostPayload, std::byte{7});
  const auto name = bytes_of("gloo/0");
  const Hello hello{1, 2, 3, 4};
  const auto stream = joined({encode(hello), encode({FrameKind::kOpen, 1, 0, name}),
                              encode({FrameKind::kData, 1, 1, most}), encode_credit(2, 2, 77),
                              encode({FrameKind::kData, 0xFFFFFFFF, 3, bytes_of("x")}),
                              encode({FrameKind::kFinish, 1, 4, {}}),
                              encode({FrameKind::kReset, 1, uint64_t(-1), {}}),
                              encode({FrameKind::kAck, 0, uint64_t(1) << 63, {}}),
                              encode({FrameKind::kKeepAlive, 0, 0, {}})});
  for (const std::size_t step : {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{17},
                                 std::size_t{50'000}, stream.size()}) {
    FrameReader reader;
    std::vector<FrameKind> kinds;
    std::vector<Bytes> again;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      feed(reader, std::span(stream).subspan(at, std::min(step, stream.size() - at)));
      while (const auto frame = reader.next()) {
        kinds.push_back(frame->kind);
        again.push_back(encode(*frame));
        if (frame->kind == FrameKind::kHello) CHECK(read_hello(*frame) == hello);
        if (frame->kind == FrameKind::kOpen) CHECK(read_port_name(*frame) == "gloo/0");
        if (frame->kind == FrameKind::kCredit) CHECK(read_credit(*frame) == 77);
      }
    }
    CHECK(kinds.size() == 9);
    CHECK(joined(again) == stream);
  }
}

TEST_CASE("a reader has room for frames without end") {
  FrameReader reader;
  const auto frame = encode({FrameKind::kData, 1, 0, Bytes(40'000)});
  Bytes rest;
  int frames = 0;
  for (int i = 0; i < 100; ++i) {
    rest.insert(rest.end(), frame.begin(), frame.end());
    const auto count = std::min<std::size_t>(rest.size(), 33'333);
    feed(reader, std::span(rest).first(count));
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
    while (reader.next()) ++frames;
  }
  CHECK(frames == 100 * 33'333 / static_cast<int>(frame.size()));
}

std::string error_of(Bytes bytes) {
  FrameReader reader;
  feed(reader, bytes);
  try {
    const auto frame = reader.next();
    if (!frame) return "incomplete";
    if (frame->kind == FrameKind::kHello) read_hello(*frame);
    if (frame->kind == FrameKind::kOpen) read_port_name(*frame);
  } catch (const WrongFrame& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a frame with a wrong field is refused by its header alone") {
  const auto with = [](Bytes bytes, std::size_t at, int value) {
    bytes[at] = static_cast<std::byte>(value);
    bytes.resize(std::max(kFrameHeaderBytes, std::min(bytes.size(), std::size_t{200})));
    return bytes;
  };
  const auto data = encode({FrameKind::kData, 1, 0, bytes_of("x")});
  const auto keep_alive = encode({FrameKind::kKeepAlive, 0, 0, {}});
  const auto hello = encode(Hello{1, 0, 0, 1});
  CHECK(error_of(data).empty());
  for (const int kind : {0, 9, 255})
    CHECK_THAT(error_of(with(data, 0, kind)), Contains("unknown kind"));
  CHECK_THAT(error_of(with(data, 1, 0)), Contains("payload of 0 bytes"));
  CHECK_THAT(error_of(with(data, 3, 0xFF)), Contains("payload of"));
  CHECK_THAT(error_of(with(data, 4, 0)), Contains("with stream 0"));
  CHECK_THAT(error_of(with(keep_alive, 1, 1)), Contains("payload of 1 bytes"));
  CHECK_THAT(error_of(with(keep_alive, 4, 1)), Contains("with stream 1"));
  CHECK_THAT(error_of(with(keep_alive, 8, 1)), Contains("with a number"));
  CHECK_THAT(error_of(with(hello, 1, 47)), Contains("payload of 47 bytes"));
  CHECK_THAT(error_of(with(hello, 31, '2')), Contains("another version"));
  CHECK_THAT(error_of(with(hello, 32, 0)), Contains("no tunnel id"));
  for (const std::string name : {"a b", "\n", "a\x80"}) {
    CHECK_THAT(error_of(encode({FrameKind::kOpen, 1, 0, bytes_of(name)})), Contains("proper name"));
  }
  CHECK_THAT(error_of(encode({FrameKind::kOpen, 1, 0, bytes_of(std::string(65, 'a'))})),
             Contains("payload of 65 bytes"));
  CHECK_THROWS_AS(encode({FrameKind::kData, 1, 0, Bytes(kMostPayload + 1)}), InternalError);
}

}  // namespace
}  // namespace farstep::wan
