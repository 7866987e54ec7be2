// The time that a site has for handing in.
#include "trainer/round/round_stop.h"

#include <atomic>
#include <future>

#include "tests/support/catch.h"

namespace farstep {
namespace {

// Waits until the token's stop is requested.
void wait_for(const std::stop_token& token) {
  std::promise<void> requested;
  const std::stop_callback tell(token, [&] { requested.set_value(); });
  requested.get_future().wait();
}

TEST_CASE("without time to hand in a stop gives up at once") {
  const std::stop_source asked;
  const HandInTime time(asked.get_token(), 0, 1, [] { return false; });
  CHECK(time.stop().asked == asked.get_token());
  CHECK(time.stop().gives_up == asked.get_token());
}

TEST_CASE("the time to hand in begins with the stop and ends by itself") {
  std::stop_source asked;
  const HandInTime time(asked.get_token(), 0.05, 1e6, [] { return false; });
  CHECK_FALSE(time.stop().gives_up.stop_requested());
  asked.request_stop();
  wait_for(time.stop().gives_up);
}

TEST_CASE("the time to hand in ends when there is nothing to wait for") {
  std::stop_source asked;
  std::promise<void> looked;
  std::atomic<int> looks = 0;
  const HandInTime time(asked.get_token(), 1e6, 1e-3, [&] {
    if (++looks == 1) looked.set_value();
    return looks > 1;
  });
  CHECK(looks == 0);
  asked.request_stop();
  looked.get_future().wait();
  wait_for(time.stop().gives_up);
  CHECK(looks == 2);
}

TEST_CASE("the time to hand in can be cut short by the end of the site") {
  for (const bool is_asked : {false, true}) {
    std::stop_source asked;
    std::promise<void> looked;
    std::atomic<bool> has_looked = false;
    RoundStop stop;
    {
      const HandInTime time(asked.get_token(), 1e6, 1e6, [&] {
        if (!has_looked.exchange(true)) looked.set_value();
        return false;
      });
      stop = time.stop();
      if (is_asked) {
        asked.request_stop();
        looked.get_future().wait();
      }
    }
    CHECK_FALSE(stop.gives_up.stop_requested());
  }
}

}  // namespace
}  // namespace farstep
