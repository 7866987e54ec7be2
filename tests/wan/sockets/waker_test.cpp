#include "wan/sockets/waker.h"

#include <poll.h>
#include <sys/resource.h>

#include <thread>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// Whether a poll() that waits for so long finds the descriptor ready.
bool is_ready_within(const Waker& waker, int milliseconds) {
  pollfd entry{waker.fd(), POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) == 1;
}

}  // namespace

TEST_CASE("a waker ends a wait at once, whether it is called before or in it") {
  const Waker waker;
  CHECK_FALSE(is_ready_within(waker, 0));
  waker.clear();  // of nothing
  waker.wake();
  waker.wake();
  CHECK(is_ready_within(waker, 0));
  waker.clear();
  CHECK_FALSE(is_ready_within(waker, 0));
  std::thread other([&waker] { waker.wake(); });
  CHECK(is_ready_within(waker, 60'000));
  other.join();
}

// poll() ignores a descriptor of -1, so the thread behind it waited for ever.
TEST_CASE("a waker that gets no descriptor says so") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::string error;
  try {
    const Waker waker;
  } catch (const InternalError& failure) {
    error = failure.what();
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_THAT(error, Catch::Contains("Too many open files") && Catch::Contains("raise the limit"));
}
