#include "wan/link/uplink.h"

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

constexpr auto kPiece = Uplink::kPieceBytes;
constexpr double kPieceASecond = 8.0 * kPiece;  // bits a second
constexpr double kNever = Uplink::kNever;

LinkShape shape_of(double pieces_a_second, double delay_seconds = 0) {
  return {.rate_bits_per_second = pieces_a_second * kPieceASecond, .delay_seconds = delay_seconds};
}

}  // namespace

TEST_CASE("links take turns and the one served longest ago is next") {
  Uplink uplink(kPieceASecond, 3, shape_of(100, 0.25), 1);
  const std::vector<double> ready{0, 0, 0};
  for (int turn = 0; turn < 9; ++turn) {
    const auto next = uplink.next(ready);
    CHECK(next.link == static_cast<std::size_t>(turn % 3));
    CHECK(next.start_seconds == turn);
    // The link is as slow as the uplink.
    const auto transit = uplink.send(next, kPiece);
    CHECK(transit.leave_seconds == turn + 1);
    CHECK(transit.arrive_seconds == turn + 1.25);
  }
}

TEST_CASE("a slow link holds up no other") {
  Uplink uplink(kPieceASecond, 2, shape_of(100), 1);
  uplink.set_shape(0, shape_of(0.25), 0);
  int of_slow = 0;
  for (int turn = 0; turn < 12; ++turn) {
    const auto next = uplink.next(std::vector<double>{0, 0});
    CHECK(next.start_seconds == turn);
    of_slow += next.link == 0;
    uplink.send(next, kPiece);
  }
  CHECK(of_slow == 3 + 1);  // three have left, and one waits
}

TEST_CASE("who has nothing to send or a cut link gets no turn") {
  Uplink uplink(kPieceASecond, 2, shape_of(1), 1);
  CHECK(uplink.next(std::vector<double>{kNever, kNever}).start_seconds == kNever);
  CHECK(uplink.next(std::vector<double>{kNever, 3}).link == 1);
  CHECK(uplink.next(std::vector<double>{kNever, 3}).start_seconds == 3);
  auto cut = shape_of(1);
  cut.is_cut = true;
  uplink.set_shape(1, cut, 0);
  CHECK(uplink.next(std::vector<double>{kNever, 3}).start_seconds == kNever);
  uplink.set_shape(1, shape_of(1), 5);
  CHECK(uplink.next(std::vector<double>{kNever, 3}).start_seconds == 5);
}

TEST_CASE("a piece that lost packets is a round trip late and its link waits for that long") {
  auto lossy = shape_of(1, 0.5);
  lossy.loss = 1;
  Uplink uplink(kPieceASecond, 2, lossy, 1);
  const auto transit = uplink.send(uplink.next(std::vector<double>{0, kNever}), kPiece);
  CHECK(transit.leave_seconds == 2);  // a second at the rate, and twice the delay
  CHECK(transit.arrive_seconds == 2.5);
  CHECK(uplink.lost_packets(0) == (kPiece + Uplink::kPacketBytes - 1) / Uplink::kPacketBytes);
  CHECK(uplink.lost_packets(1) == 0);
  CHECK(uplink.start_seconds(0, 0) == 2);
  CHECK(uplink.next(std::vector<double>{0, 0}).link == 1);
  CHECK(uplink.next(std::vector<double>{0, 0}).start_seconds == 1);
}
