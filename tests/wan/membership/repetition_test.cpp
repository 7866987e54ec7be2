// What a member sends again, over real sockets.
#include <future>
#include <thread>

#include "tests/support/catch.h"
#include "tests/wan/membership/parties.h"
#include "tests/wan/membership/puppet.h"
#include "tests/wan/transport/cuttable_link.h"

namespace farstep::wan {
namespace {

// A site behind a slow line whose request takes many heartbeats to arrive.
struct SlowSite {
  static constexpr int64_t kValueBytes = 300'000;
  static constexpr int64_t kMessageBytes = 2 * kValueBytes;  // in hexadecimal

  RealClock clock;
  Coordinator coordinator{kAnyPort, served(1), patient_deadlines(), clock};
  CuttableLink link{std::stoi(coordinator.endpoint().substr(16))};
  Member member{link.endpoint(), "s0", patient_deadlines(), clock};

  SlowSite() {
    member.join({});
    link.slow_down(kMessageBytes);  // a second for one
  }
  std::future<void> put() {
    return std::async(std::launch::async, [&] { member.put("k", std::string(kValueBytes, 'x')); });
  }
  // How often the request has come so far, beside heartbeats.
  double copies() const {
    return static_cast<double>(link.forwarded_bytes()) / static_cast<double>(kMessageBytes);
  }
  void leave() {
    member.leave(Outcome::kDone, "");
    CHECK(coordinator.wait_until_over(10));
    CHECK(coordinator.failure().empty());
  }
};

}  // namespace

TEST_CASE("a slow line carries one copy of a request, with heartbeats behind it") {
  SlowSite site;
  site.put().get();
  CHECK(site.member.get("k").size() == SlowSite::kValueBytes);
  CHECK(site.copies() > 1);
  CHECK(site.copies() < 1.5);
  site.leave();
}

TEST_CASE("a long request goes out again as soon as its connection is cut") {
  SlowSite site;
  auto put = site.put();
  while (site.copies() < 0.3) std::this_thread::yield();
  site.link.cut();
  // By its bytes alone, the next copy would have to wait for 18 s.
  CHECK(put.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
  put.get();
  CHECK(site.copies() < 2.5);
  site.leave();
}

}  // namespace farstep::wan
