#include "trainer/site/emulated_backward.h"

#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"

namespace farstep {
namespace {

// Notes when it is told what.
class Notes : public SiteReduction {
 public:
  explicit Notes(Clock& clock) : clock_(clock) {}
  void begin_step() override { times.clear(); }
  void ready(std::size_t, int64_t, int64_t) override { times.push_back(clock_.now_seconds()); }
  bool finish(std::size_t) override {
    times.push_back(clock_.now_seconds());
    return true;
  }
  void abandon() override { is_abandoned = true; }
  double waited_seconds() const override { return 0.25; }

  std::vector<double> times;
  bool is_abandoned = false;

 private:
  Clock& clock_;
};

TEST_CASE("a gradient's parts are final when an emulated device would have made them") {
  FakeClock clock(100);
  Notes notes(clock);
  EmulatedBackward emulated(notes, clock, 10, 6);
  emulated.begin_step();
  emulated.ready(0, 5, 10);
  emulated.ready(0, 0, 5);
  CHECK(emulated.finish(0));
  // Forward takes a third of 6 s, and each half of the values a third.
  REQUIRE(notes.times.size() == 3);
  CHECK(notes.times[0] == Approx(104));
  CHECK(notes.times[1] == Approx(106));
  CHECK(notes.times[2] == Approx(106));
  CHECK(emulated.slept_seconds() == Approx(6));
  CHECK(emulated.waited_seconds() == 0.25);
  emulated.abandon();
  CHECK(notes.is_abandoned);
}

TEST_CASE("a device that is slower than what it emulates does not sleep") {
  FakeClock clock;
  Notes notes(clock);
  EmulatedBackward emulated(notes, clock, 2, 3);
  emulated.begin_step();
  clock.advance(5);
  emulated.ready(0, 0, 2);
  CHECK(emulated.finish(0));
  CHECK(emulated.slept_seconds() == 0);
  CHECK(notes.times.back() == 5);
}

}  // namespace
}  // namespace farstep
