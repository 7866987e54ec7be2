#include "wan/transport/lines/uplink_pacer.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

constexpr double kRoundTrip = 0.1;
constexpr double kStep = 0.05;

LineSample sample_of(double now_seconds, double delivered_bytes, bool has_queue) {
  const double stretch = has_queue ? 1.8 : 1.02;
  return {.now_seconds = now_seconds,
          .delivered_bytes = static_cast<uint64_t>(delivered_bytes),
          .least_rtt_seconds = kRoundTrip,
          .least_stretch = stretch,
          .most_stretch = stretch,
          .is_sending = true};
}

// A line, and a site that sends 100 Mbit to each of `peers`, again and again.
class Line {
 public:
  explicit Line(int peers) : peers_(peers) {}
  double bits_per_second = 1e8;

  // One exchange; the pace of all peers together from then on, 0 if there is none yet.
  double exchange() {
    for (int peer = 0; peer < peers_; ++peer) pacer_.begin(now_);
    const bool is_full = pace_ == 0 || pace_ > bits_per_second;
    // Overrun, a line loses some of what it could do.
    const double rate = is_full ? 0.95 * bits_per_second : pace_;
    for (double bits = 1e8 * peers_; bits > 0; bits -= rate * kStep) {
      now_ += kStep;
      delivered_bytes_ += rate * kStep / 8;
      pacer_.observe(sample_of(now_, delivered_bytes_, is_full));
    }
    std::optional<Paces> paces;
    for (int peer = 0; peer < peers_; ++peer) {
      CHECK(pacer_.ends_with_next() == (peer + 1 == peers_));
      paces = pacer_.end(now_, peer, static_cast<uint64_t>(1e8 / 8));
    }
    if (!paces) return pace_;
    pace_ = 0;
    for (const auto& [_, pace] : *paces) pace_ += pace;
    return pace_;
  }

 private:
  const int peers_;
  UplinkPacer pacer_;
  double now_ = 0, delivered_bytes_ = 0, pace_ = 0;
};

}  // namespace

TEST_CASE("the pace settles a little round the line's speed") {
  for (const int peers : {2, 3, 8}) {
    Line line(peers);
    for (int i = 0; i < 4; ++i) line.exchange();
    for (int i = 0; i < 40; ++i) CHECK(line.exchange() == Approx(1e8).epsilon(0.07));
  }
}

TEST_CASE("the pace follows a line that gets slower at once and one that gets faster in time") {
  Line line(2);
  for (int i = 0; i < 6; ++i) line.exchange();
  line.bits_per_second = 6e7;
  line.exchange();
  CHECK(line.exchange() == Approx(6e7).epsilon(0.07));
  line.bits_per_second = 1e8;
  for (int i = 0; i < 40; ++i) line.exchange();
  CHECK(line.exchange() == Approx(1e8).epsilon(0.07));
}

TEST_CASE("one exchange in trouble changes nothing and two do") {
  Line line(2);
  for (int i = 0; i < 6; ++i) line.exchange();
  line.bits_per_second = 1e7;
  CHECK(line.exchange() > 9e7);
  CHECK(line.exchange() == Approx(1e7).epsilon(0.07));
}

TEST_CASE("what is forgotten is learned anew") {
  UplinkPacer pacer;
  const auto busy = [&](double from_seconds, double bytes_per_second) {
    pacer.begin(from_seconds);
    for (double seconds = 0; seconds <= 5; seconds += kStep) {
      pacer.observe(sample_of(from_seconds + seconds, bytes_per_second * seconds, true));
    }
    const auto paces = pacer.end(from_seconds + 5, 1, 1000);
    return paces ? paces->at(1) : 0;
  };
  CHECK(busy(0, 1e6) == Approx(8e6));
  CHECK(busy(10, 1e5) == 0);  // a trouble that may pass
  pacer.forget();
  CHECK(busy(20, 1e5) == Approx(8e5));
}

TEST_CASE("waiting for a peer is no time of a full line") {
  // A server's answer takes 3 s. Meanwhile the kernel's round trips stay long, as nothing new
  // comes.
  UplinkPacer pacer;
  pacer.begin(0);
  pacer.begin(0);
  double bytes = 0;
  for (int step = 1; step <= 140; ++step) {
    const bool waits = step > 40 && step <= 100;
    if (!waits) bytes += 1e6 * kStep;
    auto sample = sample_of(step * kStep, bytes, /*has_queue=*/true);
    sample.is_sending = !waits;
    pacer.observe(sample);
  }
  CHECK_FALSE(pacer.end(7, 1, 2000000));
  const auto paces = pacer.end(7, 2, 2000000);
  REQUIRE(paces);
  CHECK(paces->at(1) + paces->at(2) == Approx(8e6).epsilon(0.03));
}

TEST_CASE("a busy time without a queue sets no pace") {
  UplinkPacer pacer;
  for (int time = 0; time < 30; ++time) {
    pacer.begin(10 * time);
    for (int step = 1; step <= 100; ++step) {
      const double now_seconds = 10 * time + step * kStep;
      pacer.observe(sample_of(now_seconds, 1e6 * now_seconds, false));
    }
    CHECK_FALSE(pacer.end(10 * time + 5, 1, 5000000));
  }
}

TEST_CASE("short busy times and near peers teach nothing") {
  const auto teaches = [](double seconds, double rtt_seconds) {
    UplinkPacer pacer;
    pacer.begin(0);
    for (double now_seconds = 0; now_seconds <= seconds; now_seconds += kStep) {
      auto sample = sample_of(now_seconds, 1e6 * now_seconds, true);
      sample.least_rtt_seconds = rtt_seconds;
      pacer.observe(sample);
    }
    return pacer.end(seconds, 1, 1000000).has_value();
  };
  CHECK(teaches(2.5, 0.1));
  CHECK_FALSE(teaches(0.9, 0.01));
  CHECK_FALSE(teaches(2.5, 0.3));
  CHECK_FALSE(teaches(30, 0.0001));
}

TEST_CASE("a busy time lasts as long as anything is under way and shares go by bytes") {
  UplinkPacer pacer;
  pacer.begin(0);
  pacer.begin(0);
  for (int step = 0; step <= 50; ++step) {
    pacer.observe(sample_of(step * kStep, 1e6 * step * kStep, true));
  }
  CHECK_FALSE(pacer.end(2.5, 1, 3000000));
  pacer.begin(2.5);
  CHECK_FALSE(pacer.end(3, 3, 0));
  const auto paces = pacer.end(4, 2, 1000000);
  REQUIRE(paces);
  CHECK(paces->size() == 2);
  CHECK(paces->at(1) == Approx(3 * paces->at(2)));
  CHECK(paces->at(1) + paces->at(2) == Approx(8e6));
}
