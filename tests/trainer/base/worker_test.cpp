#include "trainer/base/worker.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;

TEST_CASE("tasks run one after the other in the order of submission") {
  std::vector<int> order;
  std::vector<std::future<int>> results;
  Worker worker;
  for (int i = 0; i < 1000; ++i) {
    results.push_back(worker.submit([&order, i] {
      order.push_back(i);
      return i * i;
    }));
  }
  for (int i = 0; i < 1000; ++i) REQUIRE(results[i].get() == i * i);
  for (int i = 0; i < 1000; ++i) REQUIRE(order[i] == i);
}

TEST_CASE("a task's exception reaches who waits and the next task runs") {
  Worker worker;
  auto failing = worker.submit([] { throw PeerError("north", "gone"); });
  auto working = worker.submit([] { return std::string("fine"); });
  try {
    failing.get();
    FAIL("no exception");
  } catch (const PeerError& error) {
    CHECK(error.site() == "north");
  }
  CHECK(working.get() == "fine");
}

TEST_CASE("the destructor runs what is queued") {
  int done = 0;
  {
    Worker worker;
    std::promise<void> gate;
    auto opened = gate.get_future().share();
    worker.submit([opened] { opened.wait(); });
    for (int i = 0; i < 50; ++i) worker.submit([&done] { ++done; });
    gate.set_value();
  }
  CHECK(done == 50);
}

TEST_CASE("tasks run on another thread and may own what cannot be copied") {
  Worker worker;
  CHECK(worker.submit([] { return std::this_thread::get_id(); }).get() !=
        std::this_thread::get_id());
  auto owned = std::make_unique<int>(7);
  CHECK(worker.submit([owned = std::move(owned)] { return *owned; }).get() == 7);
}

TEST_CASE("a worker without tasks ends") {
  for (int i = 0; i < 20; ++i) Worker worker;
}
