#include "wan/transport/uplink_pacer.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace farstep;

namespace {

constexpr double kRtt = 0.1;

// A line and a site that sends 100 Mbit to each of `peers`, again and again.
class Line {
 public:
  explicit Line(int peers) : peers_(peers) {}
  double bits_per_second = 1e8;

  // One exchange; the pace of all peers together from then on, 0 if there is none.
  double exchange() {
    const double bits = 1e8 * peers_;
    // Overrun, a line loses a tenth of its speed.
    const double limit = pace_ > 0 ? std::min(pace_, bits_per_second) : bits_per_second;
    const double rate = pace_ > bits_per_second || pace_ == 0 ? 0.9 * limit : limit;
    for (int peer = 0; peer < peers_; ++peer) pacer_.begin(now_);
    now_ += bits / rate + 2 * kRtt;
    std::optional<Paces> paces;
    for (int peer = 0; peer < peers_; ++peer) {
      paces = pacer_.end(now_, peer, static_cast<uint64_t>(1e8 / 8), kRtt);
    }
    if (!paces) return 0;
    pace_ = 0;
    for (const auto& [_, pace] : *paces) pace_ += pace;
    return pace_;
  }

 private:
  const int peers_;
  UplinkPacer pacer_;
  double now_ = 0, pace_ = 0;
};

}  // namespace

TEST_CASE("the pace settles a little round the line's speed") {
  for (const int peers : {1, 3}) {
    Line line(peers);
    for (int i = 0; i < 6; ++i) line.exchange();
    for (int i = 0; i < 20; ++i) CHECK(line.exchange() == Approx(1e8).epsilon(0.1));
  }
}

TEST_CASE("the pace follows a line that gets slower or faster") {
  Line line(2);
  for (int i = 0; i < 6; ++i) line.exchange();
  line.bits_per_second = 3e7;
  for (int i = 0; i < 4; ++i) line.exchange();
  CHECK(line.exchange() == Approx(3e7).epsilon(0.1));
  line.bits_per_second = 1e8;
  for (int i = 0; i < 60; ++i) line.exchange();
  CHECK(line.exchange() == Approx(1e8).epsilon(0.1));
}

TEST_CASE("one exchange in trouble changes nothing") {
  Line line(1);
  for (int i = 0; i < 6; ++i) line.exchange();
  line.bits_per_second = 1e6;
  CHECK(line.exchange() > 9e7);
  line.bits_per_second = 1e8;
  CHECK(line.exchange() > 9e7);
}

TEST_CASE("short busy times and near peers teach nothing") {
  UplinkPacer pacer;
  pacer.begin(0);
  CHECK_FALSE(pacer.end(0.5, 1, 1000000, 0.01));
  pacer.begin(1);
  CHECK_FALSE(pacer.end(2.5, 1, 1000000, 0.2));
  pacer.begin(3);
  CHECK_FALSE(pacer.end(30, 1, 1000000, 0.0001));
}

TEST_CASE("a busy time lasts as long as anything is under way and shares go by bytes") {
  UplinkPacer pacer;
  pacer.begin(0);
  pacer.begin(0);
  CHECK_FALSE(pacer.end(5, 1, 3000000, 0.05));
  pacer.begin(5);
  CHECK_FALSE(pacer.end(6, 3, 0, 0.05));
  const auto paces = pacer.end(10, 2, 1000000, 0.05);
  REQUIRE(paces);
  CHECK(paces->size() == 2);
  CHECK(paces->at(1) == Approx(3 * paces->at(2)));
  CHECK(paces->at(1) + paces->at(2) == Approx(1.25 * 8 * 4e6 / (10 - 0.1)));
}
