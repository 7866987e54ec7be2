#include "wan/transport/lines/loss_watch.h"

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

constexpr double kRtt = 0.08;
constexpr uint64_t kPacketBytes = 1448;

// A connection of 20 MB/s that is looked at 20 times a second.
class Way {
 public:
  // A twentieth of a second in which `lost` packets were sent once more; is it lossy now?
  bool pass(int lost, bool has_queue) {
    sample_.now_seconds += 0.05;
    sample_.delivered_bytes += 1000000;
    sample_.retransmitted_bytes += static_cast<uint64_t>(lost) * kPacketBytes;
    sample_.least_rtt_seconds = kRtt;
    sample_.least_stretch = sample_.most_stretch = has_queue ? 1.6 : 1.05;
    return watch_.is_lossy(sample_);
  }

 private:
  LossWatch watch_;
  LineSample sample_;
};

}  // namespace

TEST_CASE("a packet lost in a thousand without a queue makes a way lossy within two seconds") {
  Way way;
  int passed = 0;
  while (passed < 100 && !way.pass(passed % 3 == 0 ? 2 : 0, false)) ++passed;
  CHECK(passed > 5);
  CHECK(passed < 40);
}

TEST_CASE("losses while a queue stands say nothing of the way") {
  Way way;
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(way.pass(i % 2, true));
  // Nor do those that a queue's overflow leaves to be sent again when it is gone.
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(way.pass(i % 50 == 1 ? 3 : 0, i % 50 < 2));
}

TEST_CASE("one burst of losses is not a lossy way") {
  Way way;
  for (int i = 0; i < 3; ++i) CHECK_FALSE(way.pass(500, false));
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(way.pass(0, false));
}

TEST_CASE("a loss in fifty thousand packets is left to the usual control however long it goes on") {
  Way way;
  for (int i = 0; i < 20000; ++i) CHECK_FALSE(way.pass(i % 72 == 1 ? 1 : 0, false));
}

TEST_CASE("a way without traffic is not lossy") {
  LossWatch watch;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(watch.is_lossy({.now_seconds = 1.0 * i}));
}
