#include "heterogeneity/profile/device_memory.h"

#include <signal.h>
#include <sys/mman.h>

#include <cmath>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

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
  CHECK(open_device_memory(at::kCPU, 12345, 1)->bytes() == 12345);
  const auto whole = open_device_memory(at::kCPU, std::nullopt, 1)->bytes();
  const auto third = open_device_memory(at::kCPU, std::nullopt, 3)->bytes();
  CHECK(whole > 100 * kMebibyte);
  CHECK(static_cast<double>(third) == Approx(static_cast<double>(whole) / 3).epsilon(0.2));
}

TEST_CASE("A step fits if its peak stays within the budget") {
  const auto memory = open_device_memory(at::kCPU, 40 * kMebibyte, 1);
  const auto fits = [&](int64_t n) { return memory->holds(n, [n] { take_memory(n); }); };
  const auto edge = largest_that_fits(fits, 1000);
  // 8 + 2 n MiB, and a little that the process takes besides.
  CHECK(edge >= 14);
  CHECK(edge <= 15);
}

TEST_CASE("A step far beyond the budget is not even tried") {
  const auto memory = open_device_memory(at::kCPU, 20 * kMebibyte, 1);
  const auto holds = [&](int64_t n) { return memory->holds(n, [n] { take_memory(n); }); };
  CHECK(holds(1));
  CHECK(holds(2));
  CHECK(!memory->holds(1000, [] { FAIL("was tried"); }));
  CHECK(holds(4));
}

TEST_CASE("Memory that the system refuses does not fit and other errors pass") {
  const auto memory = open_device_memory(at::kCPU, 20 * kMebibyte, 1);
  CHECK(!memory->holds(1, [] { at::empty({int64_t{1} << 60}, at::kByte); }));
  CHECK_THROWS_WITH(memory->holds(1, [] { at::empty({2}).view({3}); }), Catch::Contains("shape"));
}

TEST_CASE("What steps take is given back") {
  const auto memory = open_device_memory(at::kCPU, 100 * kMebibyte, 1);
  int steps = 0;
  CHECK(memory->holds(1, [&] {
    take_memory(1);
    ++steps;
  }));
  CHECK(steps == 0);  // they were taken in a copy of the process
}

TEST_CASE("The peak of several steps counts") {
  const auto memory = open_device_memory(at::kCPU, 60 * kMebibyte, 1);
  int steps = 0;
  CHECK(!memory->holds(1, [&] { take_memory(++steps == 2 ? 40 : 1); }));
}

TEST_CASE("Steps that get the process killed do not fit") {
  const auto memory = open_device_memory(at::kCPU, 60 * kMebibyte, 1);
  CHECK(!memory->holds(1, [] { raise(SIGKILL); }));
}

}  // namespace farstep
