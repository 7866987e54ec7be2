#include "wan/transport/link_meter.h"

#include "tests/support/catch.h"
#include "tests/wan/transport/meshes.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// A link that was used as its test says.
class Line {
 public:
  Line() : meter_(state_) {}
  std::optional<double> send(uint64_t bytes, double seconds, double rtt_seconds = 0.1) {
    state_.sent_bytes += bytes;
    state_.sending_seconds += seconds;
    state_.rtt_seconds = rtt_seconds;
    meter_.observe(state_);
    return meter_.bits_per_second();
  }

 private:
  LinkState state_{.sent_bytes = 77, .sending_seconds = 5};  // before the meter was there
  LinkMeter meter_;
};

}  // namespace

TEST_CASE("sends that fill the line tell its speed") {
  Line line;
  CHECK(line.send(1'000'000, 0.8).value() == Approx(10e6));
  CHECK(line.send(1'000'000, 1.6).value() == Approx(5e6));
  CHECK(line.send(4'000'000, 0.8).value() == Approx(40e6));
}

TEST_CASE("sends of a few round trips raise the figure and never lower it") {
  Line line;
  CHECK(line.send(1000, 0.1).value() == Approx(80e3));
  CHECK(line.send(10'000, 0.1).value() == Approx(800e3));
  CHECK(line.send(1'000'000, 0.8).value() == Approx(10e6));
  CHECK(line.send(1000, 0.1).value() == Approx(10e6));
  CHECK(line.send(1000, 0.79).value() == Approx(10e6));
  CHECK(line.send(2'000'000, 0.4).value() == Approx(40e6));
  CHECK(line.send(1000, 0.8).value() == Approx(10e3));  // even so few fill it now
}

TEST_CASE("what takes no time teaches nothing") {
  Line line;
  CHECK_FALSE(line.send(1000, 0));
  CHECK_FALSE(line.send(0, 3));
  CHECK_FALSE(line.send(1000, 0.049, 0));
  CHECK(line.send(1000, 0.05, 0).value() == Approx(160e3));
}

TEST_CASE("what went over a link is the difference of two looks") {
  const LinkState before{1, 2, 3, 4, 5, 6.5, 7}, now{10, 20, 30, 40, 50, 7.25, 0.5};
  const auto sent = since(before, now);
  CHECK(sent.sent_bytes == 9);
  CHECK(sent.received_bytes == 18);
  CHECK(sent.socket_sent_bytes == 27);
  CHECK(sent.socket_received_bytes == 36);
  CHECK(sent.retransmitted_bytes == 45);
  CHECK(sent.sending_seconds == 0.75);
  CHECK(sent.rtt_seconds == 0.5);
}

TEST_CASE("a transport has a meter for each peer and one for all") {
  const auto mesh = memory_mesh(3);
  LinkMeters meters(*mesh[1]);
  meters.look();
  for (const int peer : {0, 2}) CHECK_FALSE(meters.link(peer).bits_per_second());
  CHECK_FALSE(meters.uplink().bits_per_second());
  CHECK_THROWS_AS(meters.link(3), std::out_of_range);
}
