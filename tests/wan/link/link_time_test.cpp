// Closed forms against numbers worked out by hand, and against the uplink that sends piece by
// piece.
#include "wan/link/link_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/catch.h"
#include "trainer/base/mix.h"
#include "wan/link/uplink.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

constexpr double kMbit = 1e6;

double total_bits(const std::vector<OutgoingMessage>& messages) {
  double bits = 0;
  for (const auto& message : messages) bits += 8 * message.bytes;
  return bits;
}

// When each message has left an uplink that sends them piece by piece.
std::vector<double> by_pieces(double uplink_rate, const std::vector<OutgoingMessage>& messages) {
  Uplink uplink(uplink_rate, messages.size(), {.rate_bits_per_second = 1}, 1);
  std::vector<double> ready(messages.size(), 0), leave(messages.size());
  std::vector<std::size_t> left_bytes;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    uplink.set_shape(i, {.rate_bits_per_second = messages[i].bits_per_second}, 0);
    left_bytes.push_back(static_cast<std::size_t>(messages[i].bytes));
  }
  for (;;) {
    const auto turn = uplink.next(ready);
    if (turn.start_seconds == Uplink::kNever) return leave;
    auto& left = left_bytes[turn.link];
    const auto bytes = std::min(left, Uplink::kPieceBytes);
    leave[turn.link] = uplink.send(turn, bytes).leave_seconds;
    left -= bytes;
    if (left == 0) ready[turn.link] = Uplink::kNever;
  }
}

}  // namespace

TEST_CASE("a message takes its bytes at the rate and the delay") {
  CHECK(message_seconds(1.25e6, 10 * kMbit, 0.04) == Approx(1.04));
  CHECK(message_seconds(0, 10 * kMbit, 0.04) == 0.04);
  CHECK(message_seconds(1e9, kUnlimitedRate, 0.04) == 0.04);
}

TEST_CASE("equal messages over fast links leave together when the uplink has sent them all") {
  for (const std::size_t count : {1, 2, 3, 50}) {
    const std::vector<OutgoingMessage> messages(count, {.bytes = 1e6, .bits_per_second = 1e9});
    for (const double seconds : leave_seconds(8 * kMbit, messages)) {
      CHECK(seconds == Approx(static_cast<double>(count)));
    }
  }
}

TEST_CASE("what a slow link leaves of its part is the others'") {
  // 8 Mbit/s: the slow link has 2 of them, and each of the others 3.
  const auto leave =
      leave_seconds(8 * kMbit, std::vector<OutgoingMessage>{{1e6, 2 * kMbit}, {1e6}, {1e6}});
  CHECK(leave[0] == Approx(4));
  CHECK(leave[1] == Approx(8.0 / 3));
  CHECK(leave[2] == Approx(8.0 / 3));
}

TEST_CASE("a link whose part grows to its own rate goes no faster") {
  // 2 and 2 Mbit/s until the small one ends after 2 s; then the other has 3 of 4 Mbit/s.
  const auto leave =
      leave_seconds(4 * kMbit, std::vector<OutgoingMessage>{{0.5e6}, {2e6, 3 * kMbit}});
  CHECK(leave[0] == Approx(2));
  CHECK(leave[1] == Approx(2 + 12.0 / 3));
}

TEST_CASE("without a limit of the uplink every link has its own rate") {
  const auto leave =
      leave_seconds(kUnlimitedRate, std::vector<OutgoingMessage>{{1e6, 8 * kMbit}, {1e6}, {0, 1}});
  CHECK(leave == std::vector<double>{1, 0, 0});
  CHECK(leave_seconds(1, {}).empty());
}

TEST_CASE("pieces leave when the closed form says within two pieces a link") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto draw = [&seed, n = uint64_t{0}]() mutable {
      return static_cast<double>(mix(mix(seed) + n++) >> 11) * 0x1p-53;
    };
    const double uplink = 100 * kMbit;
    std::vector<OutgoingMessage> messages(1 + static_cast<std::size_t>(8 * draw()));
    for (auto& message : messages) {
      message.bytes = std::floor(1 + 20e6 * draw());
      message.bits_per_second = uplink * std::pow(10, 2 * draw() - 1.5);
    }
    const auto closed = leave_seconds(uplink, messages);
    const auto pieces = by_pieces(uplink, messages);
    const double piece_seconds = 8.0 * Uplink::kPieceBytes / uplink;
    const double bound = 2 * static_cast<double>(messages.size()) * piece_seconds;
    CAPTURE(seed, messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      CHECK(pieces[i] == Approx(closed[i]).epsilon(0).margin(bound));
      CHECK(closed[i] >= 8 * messages[i].bytes / messages[i].bits_per_second - 1e-9);
    }
    // All of it can leave no faster than the uplink and the slowest link let it.
    CHECK(*std::ranges::max_element(closed) >= total_bits(messages) / uplink - 1e-9);
  }
}

TEST_CASE("a reduce-scatter and all-gather is two phases of N - 1 parts") {
  CHECK(reduce_gather_seconds(1e6, 4, 8 * kMbit, 0.1) == Approx(2 * (0.75 + 0.1)));
  CHECK(reduce_gather_seconds(1e6, 2, 8 * kMbit, 0) == Approx(1));
}
