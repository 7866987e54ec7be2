#include "wan/tunnel/tunnel_end.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/wan/tunnel/two_ends.h"

namespace farstep::wan {
namespace {

using Catch::Contains;

constexpr TunnelLimits kSmall{
    .resend_bytes = 4'000, .window_bytes = 1'000, .ack_bytes = 300, .streams = 8};

struct Pair {
  explicit Pair(TunnelLimits limits = kSmall) : a(true, limits), b(false, limits) {
    connect(a.end, b.end);
    settle(a.end, b.end);
  }
  ReadEnd a, b;
};

void write_all(TunnelEnd& end, uint32_t stream, std::string_view text) {
  end.write(stream, bytes_of(text));
}

TEST_CASE("a stream carries bytes and its end, each way by itself") {
  Pair pair;
  const auto stream = pair.a.end.open("gloo");
  write_all(pair.a.end, stream, "question");
  pair.a.end.finish(stream);
  settle(pair.a.end, pair.b.end);
  auto& there = pair.b.streams.at(stream);
  CHECK(there.name == "gloo");
  CHECK(there.bytes == bytes_of("question"));
  CHECK(there.is_finished);
  CHECK(pair.b.end.streams() == 1);
  write_all(pair.b.end, stream, "answer");
  pair.b.end.finish(stream);
  settle(pair.a.end, pair.b.end);
  CHECK(pair.a.streams.at(stream).bytes == bytes_of("answer"));
  CHECK(pair.a.streams.at(stream).is_finished);
  CHECK(pair.a.end.streams() == 0);
  CHECK(pair.b.end.streams() == 0);
  // Either end opens streams, and no two have the same id.
  const auto back = pair.b.end.open("gloo"), next = pair.a.end.open("gloo");
  settle(pair.a.end, pair.b.end);
  CHECK(pair.a.streams.contains(back));
  CHECK(pair.b.streams.contains(next));
  CHECK(back != next);
  CHECK(next != stream);
}

TEST_CASE("a reset ends a stream at once, and late frames of it are ignored") {
  Pair pair;
  const auto stream = pair.a.end.open("gloo");
  settle(pair.a.end, pair.b.end);
  pair.b.end.reset(stream);
  write_all(pair.a.end, stream, "late");
  settle(pair.a.end, pair.b.end);
  CHECK(pair.a.streams.at(stream).is_reset);
  CHECK(pair.b.streams.at(stream).bytes.empty());
  CHECK(pair.a.end.room(stream) == 0);
  CHECK(pair.a.end.streams() + pair.b.end.streams() == 0);
}

TEST_CASE("a stream that nobody reads stops at its window, and the others go on") {
  Pair pair;
  const auto slow = pair.a.end.open("slow"), fast = pair.a.end.open("fast");
  std::size_t sent = 0;
  for (int i = 0; i < 1'000; ++i) {
    for (const auto stream : {slow, fast}) {
      const auto room = pair.a.end.room(stream);
      if (room > 0) pair.a.end.write(stream, Bytes(std::min<std::size_t>(room, 100)));
      if (stream == fast) sent += std::min<std::size_t>(room, 100);
    }
    settle(pair.a.end, pair.b.end);
    pair.a.end.acknowledge();
    pair.b.end.acknowledge();
    if (pair.b.streams.contains(fast)) pair.b.read(fast);
  }
  CHECK(pair.b.streams.at(slow).bytes.size() == kSmall.window_bytes);
  CHECK(sent == 100'000);
  CHECK(pair.b.streams.at(fast).bytes.size() == sent);
  pair.b.read(slow);
  settle(pair.a.end, pair.b.end);
  CHECK(pair.a.end.room(slow) == kSmall.window_bytes);
}

TEST_CASE("without a connection a writer stops at the bound, and nothing is lost") {
  TunnelLimits limits = kSmall;
  limits.window_bytes = 100'000;
  Pair pair(limits);
  const auto stream = pair.a.end.open("gloo");
  settle(pair.a.end, pair.b.end);
  pair.a.end.end_connection();
  std::size_t sent = 0;
  while (const auto room = pair.a.end.room(stream)) {
    pair.a.end.write(stream, Bytes(std::min<std::size_t>(room, 64), std::byte{3}));
    sent += std::min<std::size_t>(room, 64);
    CHECK(pair.a.end.kept_bytes() <= limits.resend_bytes);
  }
  CHECK(sent > limits.resend_bytes / 2);
  connect(pair.a.end, pair.b.end);
  settle(pair.a.end, pair.b.end);
  CHECK(pair.b.streams.at(stream).bytes == Bytes(sent, std::byte{3}));
  pair.b.end.acknowledge();
  settle(pair.a.end, pair.b.end);
  CHECK(pair.a.end.kept_bytes() == 0);
}

// What one end writes to a stream, a byte at each place that depends on both.
Bytes text_of_stream(uint32_t stream, std::size_t from, std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(((from + i) * 2654435761U + stream * 97) >> 9);
  }
  return bytes;
}

// Both ends write random amounts to three streams; each connection carries a random number of
// bytes, often a part of a frame, and loses what is under way.
TEST_CASE("bytes arrive whole and in order over connections that are cut anywhere") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::minstd_rand random(seed);
    const auto draw = [&](std::size_t most) { return random() % (most + 1); };
    Pair pair;
    ReadEnd* ends[] = {&pair.a, &pair.b};
    std::vector<uint32_t> streams{pair.a.end.open("x"), pair.b.end.open("y"), pair.a.end.open("z")};
    settle(pair.a.end, pair.b.end);
    constexpr std::size_t kTotal = 5'000;
    std::map<std::pair<int, uint32_t>, std::size_t> written;
    const auto is_done = [&] { return pair.a.end.streams() + pair.b.end.streams() == 0; };
    bool has_connection = true;
    int turns = 0;
    for (; turns < 20'000 && !is_done(); ++turns) {
      for (const int side : {0, 1}) {
        for (const auto stream : streams) {
          auto& end = ends[side]->end;
          auto& done = written[{side, stream}];
          const auto count = std::min({draw(200), end.room(stream), kTotal - done});
          if (count > 0) end.write(stream, text_of_stream(stream, done, count));
          done += count;
          if (done == kTotal) end.finish(stream);
          if (draw(3) == 0) ends[side]->read(stream);
        }
        if (draw(3) == 0) ends[side]->end.acknowledge();
      }
      if (has_connection) {
        move_bytes(pair.a.end, pair.b.end, draw(700));
        move_bytes(pair.b.end, pair.a.end, draw(700));
        has_connection = draw(5) != 0;
        // One end may notice it later than the other, and send on.
        if (!has_connection) ends[draw(1)]->end.end_connection();
      } else {
        for (auto* one : ends) {
          const auto count = std::min(one->end.output().size(), draw(700));
          if (count > 0) one->end.sent(count);
        }
        has_connection = draw(2) == 0;
        if (has_connection) connect(pair.a.end, pair.b.end);
      }
      for (const auto* one : ends) CHECK(one->end.kept_bytes() < kSmall.resend_bytes + 2'000);
    }
    INFO("seed " << seed << ", turns " << turns);
    REQUIRE(is_done());
    for (auto* one : ends) {
      for (const auto stream : streams) {
        CHECK(one->streams.at(stream).bytes == text_of_stream(stream, 0, kTotal));
        CHECK(one->streams.at(stream).is_finished);
        CHECK_FALSE(one->streams.at(stream).is_reset);
      }
    }
  }
}

TEST_CASE("an end that begins anew ends the streams of both, and new ones work") {
  Pair pair;
  const auto old = pair.a.end.open("old");
  write_all(pair.a.end, old, "bytes");
  settle(pair.a.end, pair.b.end);
  write_all(pair.a.end, old, "under way");
  // As a restarted process: another end, which knows nothing.
  ReadEnd again(false, kSmall);
  const auto early = again.end.open("early");
  connect(pair.a.end, again.end);
  settle(pair.a.end, again.end);
  CHECK(pair.a.streams.at(old).is_reset);
  CHECK_FALSE(again.streams.contains(old));
  CHECK(pair.a.streams.at(early).name == "early");
  const auto fresh = pair.a.end.open("fresh");
  write_all(pair.a.end, fresh, "new bytes");
  settle(pair.a.end, again.end);
  CHECK(again.streams.at(fresh).bytes == bytes_of("new bytes"));
  // The same by restart(), and with a cut before its hello arrives.
  pair.a.end.restart();
  CHECK(pair.a.streams.at(fresh).is_reset);
  const auto last = pair.a.end.open("last");
  connect(pair.a.end, again.end);
  move_bytes(again.end, pair.a.end, std::size_t(-1));
  move_bytes(pair.a.end, again.end, 20);
  connect(pair.a.end, again.end);
  settle(pair.a.end, again.end);
  CHECK(again.streams.at(last).name == "last");
  CHECK(again.streams.at(early).is_reset);
}

TEST_CASE("streams beyond the limit are reset") {
  TunnelLimits few = kSmall;
  few.streams = 2;
  ReadEnd a(true, kSmall), b(false, few);
  connect(a.end, b.end);
  std::vector<uint32_t> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(a.end.open("gloo"));
  settle(a.end, b.end);
  CHECK(b.end.is_full());
  CHECK(b.streams.size() == 2);
  CHECK(a.streams.at(streams[2]).is_reset);
}

// What an end answers to frames that no end sends.
std::string error_of_frames(const std::vector<Bytes>& frames) {
  Pair pair;
  pair.a.end.open("gloo");
  settle(pair.a.end, pair.b.end);
  ReadEnd& victim = pair.b;
  try {
    for (const auto& frame : frames) {
      std::copy(frame.begin(), frame.end(), victim.end.input().begin());
      victim.end.received(frame.size());
    }
  } catch (const WrongFrame& error) {
    victim.end.restart();
    return error.what();
  }
  return "";
}

TEST_CASE("frames that no end sends are refused, with the reason") {
  const auto data = [](uint32_t stream, uint64_t sequence, std::size_t count = 1) {
    return encode({FrameKind::kData, stream, sequence, Bytes(count)});
  };
  const auto finish = [](uint64_t sequence) {
    return encode({FrameKind::kFinish, 1, sequence, {}});
  };
  const auto open = [](uint32_t stream) {
    return encode({FrameKind::kOpen, stream, 1, bytes_of("gloo")});
  };
  CHECK(error_of_frames({data(1, 1), finish(2)}).empty());
  CHECK_THAT(error_of_frames({data(1, 0)}), Contains("frame 0 came in place of 1"));
  CHECK_THAT(error_of_frames({data(1, 3)}), Contains("frame 3 came in place of 1"));
  CHECK_THAT(error_of_frames({data(3, 1)}), Contains("never opened"));
  CHECK_THAT(error_of_frames({data(2, 1)}), Contains("never opened"));
  CHECK_THAT(error_of_frames({open(1)}), Contains("out of turn"));
  CHECK_THAT(error_of_frames({open(2)}), Contains("out of turn"));
  CHECK_THAT(error_of_frames({open(5)}), Contains("out of turn"));
  CHECK_THAT(error_of_frames({data(1, 1, kSmall.window_bytes), data(1, 2)}), Contains("overruns"));
  CHECK_THAT(error_of_frames({finish(1), finish(2)}), Contains("ends twice"));
  CHECK_THAT(error_of_frames({finish(1), data(1, 2)}), Contains("after a stream's end"));
  CHECK_THAT(error_of_frames({encode_credit(1, 1, uint64_t(-1))}), Contains("too much credit"));
  CHECK_THAT(error_of_frames({encode({FrameKind::kAck, 0, 1, {}})}), Contains("expects frame 1"));
  CHECK_THAT(error_of_frames({encode(Hello{1, 0, 0, 1})}), Contains("hello"));
}

TEST_CASE("an ack of frames that this connection has not carried is refused") {
  Pair pair;
  const auto stream = pair.a.end.open("gloo");
  write_all(pair.a.end, stream, "bytes");
  settle(pair.a.end, pair.b.end);
  connect(pair.a.end, pair.b.end);
  const auto feed = [&](const Bytes& frame) {
    std::copy(frame.begin(), frame.end(), pair.a.end.input().begin());
    pair.a.end.received(frame.size());
  };
  feed(encode(Hello{77, 0, 0, 1'000}));  // another tunnel id: all begins anew
  pair.a.end.open("gloo");
  CHECK_THROWS_AS(feed(encode({FrameKind::kAck, 0, 1, {}})), WrongFrame);
}

}  // namespace
}  // namespace farstep::wan
