#include "heterogeneity/profile/device_memory.h"

#include <signal.h>
#include <sys/mman.h>

#include <cmath>
#include <new>
#include <stdexcept>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

constexpr int64_t kMebibyte = 1 << 20;

// A step that takes 8 MiB and 2 MiB a sequence, straight from the system.
void take_memory(int64_t sequences) {
  const auto bytes = static_cast<std::size_t>((8 + 2 * sequences) * kMebibyte);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  FARSTEP_CHECK(memory != MAP_FAILED, "no memory");
  ::munmap(memory, bytes);
}

}  // namespace

TEST_CASE("The largest that fits is found whatever it is") {
  for (const int64_t limit : {0, 1, 2, 3, 7, 8, 9, 64, 100}) {
    for (int64_t edge = 0; edge <= limit + 1; ++edge) {
      int calls = 0;
      int64_t largest_tried = 0;
      const auto fits = [&](int64_t n) {
        ++calls;
        largest_tried = std::max(largest_tried, n);
        CHECK(n >= 1);
        CHECK(n <= limit);
        return n <= edge;
      };
      CHECK(largest_that_fits(fits, limit) == std::min(edge, limit));
      CHECK(largest_tried <= std::max<int64_t>(1, 2 * edge));
      CHECK(calls <= 2 * std::log2(std::max<int64_t>(1, limit)) + 2);
    }
  }
}

TEST_CASE("A processor's memory is a share of what is free unless it is given") {
  CHECK(open_cpu_memory(12345, 1)->bytes() == 12345);
  const auto whole = open_cpu_memory(std::nullopt, 1)->bytes();
  const auto third = open_cpu_memory(std::nullopt, 3)->bytes();
  CHECK(whole > 100 * kMebibyte);
  CHECK(static_cast<double>(third) == Approx(static_cast<double>(whole) / 3).epsilon(0.2));
}

TEST_CASE("A step fits if its peak stays within the budget") {
  const auto memory = open_cpu_memory(40 * kMebibyte, 1);
  const auto fits = [&](int64_t n) { return memory->holds(n, [n] { take_memory(n); }); };
  const auto edge = largest_that_fits(fits, 1000);
  // 8 + 2 n MiB, and a little that the process takes besides.
  CHECK(edge >= 14);
  CHECK(edge <= 15);
}

TEST_CASE("A step far beyond the budget is not even tried") {
  const auto memory = open_cpu_memory(20 * kMebibyte, 1);
  const auto holds = [&](int64_t n) { return memory->holds(n, [n] { take_memory(n); }); };
  CHECK(holds(1));
  CHECK(holds(2));
  CHECK(!memory->holds(1000, [] { FAIL("was tried"); }));
  CHECK(holds(4));
}

TEST_CASE("Memory that the system refuses does not fit and other errors pass") {
  const auto memory = open_cpu_memory(20 * kMebibyte, 1);
  CHECK(!memory->holds(1, [] { throw std::bad_alloc(); }));
  CHECK_THROWS_WITH(memory->holds(1, [] { throw std::invalid_argument("shape"); }),
                    Catch::Contains("shape"));
}

TEST_CASE("What steps take is given back") {
  const auto memory = open_cpu_memory(100 * kMebibyte, 1);
  int steps = 0;
  CHECK(memory->holds(1, [&] {
    take_memory(1);
    ++steps;
  }));
  CHECK(steps == 0);  // they were taken in a copy of the process
}

TEST_CASE("The peak of several steps counts") {
  const auto memory = open_cpu_memory(60 * kMebibyte, 1);
  int steps = 0;
  CHECK(!memory->holds(1, [&] { take_memory(++steps == 2 ? 40 : 1); }));
}

TEST_CASE("Steps that get the process killed do not fit") {
  const auto memory = open_cpu_memory(60 * kMebibyte, 1);
  CHECK(!memory->holds(1, [] { raise(SIGKILL); }));
}

namespace {

// A heap of so many bytes, and what a step leaves of it.
struct FakeHeap {
  int64_t free = 0;
  int64_t caches_emptied = 0;

  void take(int64_t bytes) {
    if (bytes > free) throw std::bad_alloc();
    free -= bytes;
  }
  DeviceHeap heap() {
    return {.free_bytes = [this] { return free; },
            .occupy = [this](int64_t bytes) -> std::shared_ptr<void> {
              take(bytes);
              return {this, [bytes](FakeHeap* heap) { heap->free += bytes; }};
            },
            .empty_cache = [this] { ++caches_emptied; }};
  }
};

}  // namespace

TEST_CASE("On a heap steps have what training may use and no more") {
  FakeHeap fake{.free = 10'000};
  CHECK(open_heap_memory(fake.heap(), std::nullopt)->bytes() == 10'000);
  CHECK(open_heap_memory(fake.heap(), 20'000)->bytes() == 10'000);
  const auto memory = open_heap_memory(fake.heap(), 4'000);
  CHECK(memory->bytes() == 4'000);
  const auto step = [&](int64_t bytes) {
    return [&fake, bytes] {
      fake.take(bytes);
      fake.free += bytes;
    };
  };
  CHECK(memory->holds(1, step(3'960)));  // all but the head-room of 1 %
  CHECK(!memory->holds(1, step(3'961)));
  CHECK(fake.free == 10'000);
  CHECK(fake.caches_emptied == 5);
  CHECK_THROWS_AS(memory->holds(1, [] { throw std::invalid_argument("shape"); }),
                  std::invalid_argument);
}

}  // namespace farstep::heterogeneity
