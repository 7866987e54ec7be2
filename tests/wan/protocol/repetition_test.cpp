#include "wan/protocol/repetition.h"

#include <vector>

#include "tests/support/catch.h"

using farstep::wan::Repetition;

namespace {

constexpr double kNever = -1e9;

// The times at which copies of so many bytes leave in `seconds`, with a heartbeat each second that
// is answered at once.
std::vector<double> copies(Repetition& repetition, std::size_t bytes, double seconds) {
  std::vector<double> times;
  double answered = kNever;
  for (double now = 0; now < seconds; ++now) {
    if (repetition.is_due(now, answered)) {
      repetition.note_copy(now, bytes, 1);
      times.push_back(now);
    }
    answered = now + 0.1;
  }
  return times;
}

}  // namespace

TEST_CASE("the pauses between two copies double, to 16 heartbeats") {
  Repetition repetition;
  CHECK_FALSE(repetition.is_sent());
  // A pause of one second at first, by its bytes.
  CHECK(copies(repetition, 32 << 10, 80) == std::vector<double>{0, 1, 3, 7, 15, 31, 47, 63, 79});
}

TEST_CASE("a small request goes out with each of the first heartbeats") {
  Repetition repetition;
  CHECK(copies(repetition, 1 << 10, 20) == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 8, 12});
}

TEST_CASE("a large request waits for as long as its bytes demand, and no longer each time") {
  Repetition repetition;
  CHECK(copies(repetition, 20 * (32 << 10), 50) == std::vector<double>{0, 20, 40});
}

TEST_CASE("a request that may be on its way is not sent again") {
  Repetition repetition;
  repetition.note_copy(10, 100, 1);
  CHECK(repetition.is_sent());
  CHECK_FALSE(repetition.is_due(1000, kNever));
  CHECK_FALSE(repetition.is_due(1000, 10));  // the heartbeat left before it
  CHECK(repetition.is_due(1000, 10.1));
}

TEST_CASE("a request whose connection has ended is due, and its pauses begin anew") {
  Repetition repetition;
  for (double now = 0; now < 100; ++now) repetition.note_copy(now, 32 << 10, 1);
  CHECK_FALSE(repetition.is_due(110, 105));
  repetition.note_loss();
  CHECK_FALSE(repetition.is_sent());
  CHECK(repetition.is_due(100, kNever));
  repetition.note_copy(100, 32 << 10, 1);
  CHECK(repetition.is_due(101.5, 101));
}
