// A link of packets against numbers worked out by hand, and over sweeps of shapes and packets.
#include "wan/lab/packet_link.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// 1 Mbit/s: a packet of 1250 bytes takes 10 ms.
constexpr int64_t kPacketBytes = 1250;
const LinkShape kSlow{.rate_bits_per_second = 1e6, .delay_seconds = 0.05, .queue_seconds = 0.1};

}  // namespace

TEST_CASE("a packet leaves after its time at the rate and arrives after the delay") {
  PacketLink link(kSlow, 1);
  const auto transit = link.enter(7, kPacketBytes);
  CHECK(transit.fate == Fate::kArrives);
  CHECK(transit.leave_seconds == Approx(7.01));
  CHECK(transit.arrive_seconds == Approx(7.06));
}

TEST_CASE("packets that enter together leave one after the other") {
  PacketLink link(kSlow, 1);
  for (int i = 1; i <= 5; ++i) {
    CHECK(link.enter(7, kPacketBytes).leave_seconds == Approx(7 + 0.01 * i));
  }
  // The link is free again at 7.05: a packet that enters later does not wait.
  CHECK(link.enter(7.2, kPacketBytes).leave_seconds == Approx(7.21));
}

TEST_CASE("a packet without bytes takes no time at the rate") {
  PacketLink link(kSlow, 1);
  CHECK(link.enter(3, 0).arrive_seconds == Approx(3.05));
}

TEST_CASE("who would wait longer than the queue is dropped and takes no time") {
  LinkShape shape = kSlow;
  shape.queue_seconds = 0.025;
  PacketLink link(shape, 1);
  // They wait 0, 10 and 20 ms; the fourth would wait 30 ms.
  for (int i = 0; i < 3; ++i) CHECK(link.enter(1, kPacketBytes).fate == Fate::kArrives);
  CHECK(link.enter(1, kPacketBytes).fate == Fate::kQueueFull);
  CHECK(link.enter(1, 1).fate == Fate::kQueueFull);
  // 10 ms later the first has left.
  CHECK(link.enter(1.01, kPacketBytes).leave_seconds == Approx(1.04));
  CHECK(link.counters().passed == PacketCount{4, 4 * kPacketBytes});
  CHECK(link.counters().queue_full == PacketCount{2, kPacketBytes + 1});
}

TEST_CASE("without a queue only an idle link takes a packet") {
  LinkShape shape = kSlow;
  shape.queue_seconds = 0;
  PacketLink link(shape, 1);
  CHECK(link.enter(1, kPacketBytes).fate == Fate::kArrives);
  CHECK(link.enter(1.009, kPacketBytes).fate == Fate::kQueueFull);
  CHECK(link.enter(1.011, kPacketBytes).fate == Fate::kArrives);
}

TEST_CASE("a steady flow passes at the rate of the link") {
  for (const double rate : {1e3, 56e3, 2e8, 1e10}) {
    for (const int64_t bytes : {1, 40, 1499, 65535}) {
      PacketLink link({.rate_bits_per_second = rate, .queue_seconds = 1e9}, 1);
      double leave_seconds = 0;
      for (int i = 0; i < 1000; ++i) leave_seconds = link.enter(0, bytes).leave_seconds;
      CHECK(8.0 * 1000 * static_cast<double>(bytes) / leave_seconds == Approx(rate));
    }
  }
}

TEST_CASE("a cut link drops all until it is healed") {
  PacketLink link(kSlow, 1);
  auto cut = kSlow;
  cut.is_cut = true;
  const auto before = link.enter(1, kPacketBytes);
  link.set_shape(cut);
  for (int i = 0; i < 3; ++i) CHECK(link.enter(1, kPacketBytes).fate == Fate::kCut);
  link.set_shape(kSlow);
  CHECK(link.enter(1, kPacketBytes).leave_seconds == Approx(before.leave_seconds + 0.01));
  CHECK(link.counters().cut == PacketCount{3, 3 * kPacketBytes});
  CHECK(link.counters().passed == PacketCount{2, 2 * kPacketBytes});
}

TEST_CASE("the share that is lost is what was asked") {
  for (const double loss : {0.0, 0.001, 0.1, 0.5, 1.0}) {
    PacketLink link({.rate_bits_per_second = 1e9, .loss = loss}, 7);
    constexpr int kPackets = 200'000;
    for (int i = 0; i < kPackets; ++i) link.enter(i, 100);
    const double share = static_cast<double>(link.counters().lost.packets) / kPackets;
    CHECK(share == Approx(loss).margin(5 * std::sqrt(loss * (1 - loss) / kPackets)));
    CHECK(link.counters().lost.packets + link.counters().passed.packets == kPackets);
  }
}

TEST_CASE("a lost packet takes its time at the rate") {
  LinkShape shape = kSlow;
  shape.loss = 1;
  PacketLink link(shape, 1);
  const auto lost = link.enter(2, kPacketBytes);
  CHECK(lost.fate == Fate::kLost);
  CHECK(lost.leave_seconds == Approx(2.01));
  CHECK(lost.arrive_seconds == Approx(2.06));
  link.set_shape(kSlow);
  CHECK(link.enter(2, kPacketBytes).leave_seconds == Approx(2.02));
}

TEST_CASE("seed and number alone decide which packets are lost") {
  const auto lost_of = [](uint64_t seed, double rate) {
    PacketLink link({.rate_bits_per_second = rate, .loss = 0.3, .queue_seconds = 1e9}, seed);
    std::vector<bool> lost;
    for (int i = 0; i < 500; ++i) lost.push_back(link.enter(0.001 * i, 700).fate == Fate::kLost);
    return lost;
  };
  CHECK(lost_of(1, 1e6) == lost_of(1, 1e9));
  CHECK(lost_of(1, 1e6) != lost_of(2, 1e6));
}

TEST_CASE("packets keep their order when the shape changes") {
  PacketLink link(kSlow, 1);
  double last_seconds = 0;
  for (int i = 0; i < 2000; ++i) {
    auto shape = kSlow;
    shape.rate_bits_per_second = i % 3 == 0 ? 1e5 : 1e8;
    shape.delay_seconds = 0.03 * (i % 7);
    shape.queue_seconds = 0.5;
    link.set_shape(shape);
    const auto transit = link.enter(0.0005 * i, 1 + i % 1500);
    if (transit.fate != Fate::kArrives) continue;
    CHECK(transit.arrive_seconds >= last_seconds);
    CHECK(transit.arrive_seconds >= 0.0005 * i + shape.delay_seconds);
    last_seconds = transit.arrive_seconds;
  }
}

TEST_CASE("a new rate holds for what enters from then on") {
  PacketLink link(kSlow, 1);
  CHECK(link.enter(1, kPacketBytes).leave_seconds == Approx(1.01));
  auto fast = kSlow;
  fast.rate_bits_per_second = 1e7;
  link.set_shape(fast);
  CHECK(link.enter(1, kPacketBytes).leave_seconds == Approx(1.011));
}
