#include "trainer/base/system/free_memory.h"

#include "tests/support/catch.h"
#include "tests/support/fake_machine.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr const char* kMemory =
    "MemTotal:       8000000 kB\nMemFree:        1000000 kB\n"
    "MemAvailable:   4000000 kB\nSwapFree:       1000000 kB\n";

std::optional<int64_t> free(const FakeMachine& machine) {
  return free_memory_bytes(machine.root());
}

}  // namespace

TEST_CASE("free memory is what the kernel and every control group leave") {
  FakeMachine machine;
  CHECK_FALSE(free(machine));
  machine.set("proc/meminfo", kMemory);
  CHECK(free(machine) == int64_t{5'000'000} * 1024);
  CHECK(free_ram_bytes(machine.root()) == int64_t{4'000'000} * 1024);
  machine.set("proc/self/cgroup", "0::/batch/job\n");
  machine.set("sys/fs/cgroup/batch/job/memory.max", "max\n");
  machine.set("sys/fs/cgroup/batch/job/memory.current", "5000\n");
  CHECK(free(machine) == int64_t{5'000'000} * 1024);
  // A group above limits too; files that it caches can go.
  machine.set("sys/fs/cgroup/batch/memory.max", "1000000\n");
  machine.set("sys/fs/cgroup/batch/memory.current", "900000\n");
  machine.set("sys/fs/cgroup/batch/memory.stat", "anon 800000\ninactive_file 70000\nfile 90000\n");
  CHECK(free(machine) == 170'000);
  CHECK(free_ram_bytes(machine.root()) == 170'000);
  // In a container the own group is the top.
  machine.set("proc/self/cgroup", "0::/\n");
  machine.set("sys/fs/cgroup/memory.max", "3000\n");
  machine.set("sys/fs/cgroup/memory.current", "4000\n");
  CHECK(free(machine) == 0);
}

TEST_CASE("control groups of version 1 limit memory too") {
  FakeMachine machine;
  machine.set("proc/meminfo", kMemory);
  machine.set("proc/self/cgroup", "5:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n");
  // Where nothing is limited, the limit is the largest number of whole pages.
  machine.set("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.set("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
  CHECK(free(machine) == int64_t{5'000'000} * 1024);
  machine.set("sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "700000\n");
  machine.set("sys/fs/cgroup/memory/docker/a/memory.usage_in_bytes", "500000\n");
  machine.set("sys/fs/cgroup/memory/docker/a/memory.stat",
              "inactive_file 10\ntotal_inactive_file 40000\n");
  CHECK(free(machine) == 240'000);
}

TEST_CASE("what needs more memory than is free is refused with both figures and the remedy") {
  FakeMachine machine;
  const auto require = [&](int64_t bytes) {
    require_free_ram(bytes, "m: a model", "take a smaller one", machine.root());
  };
  CHECK_NOTHROW(require(int64_t{1} << 60));  // the system does not say
  machine.set("proc/meminfo", kMemory);
  CHECK_NOTHROW(require(int64_t{4'000'000} * 1024));
  CHECK_THROWS_WITH(require(5'000'000'000),
                    "m: a model needs 5.00 GB of memory at least, and 4.10 GB are free to this "
                    "process: take a smaller one");
  machine.set("proc/self/cgroup", "0::/\n");
  machine.set("sys/fs/cgroup/memory.max", "3000000000\n");
  machine.set("sys/fs/cgroup/memory.current", "1000000000\n");
  CHECK_THROWS_AS(require(2'000'000'001), ConfigError);
}

TEST_CASE("this machine has free memory") {
  const auto bytes = free_memory_bytes();
  REQUIRE(bytes);
  CHECK(*bytes > int64_t{1} << 20);
  CHECK(free_ram_bytes().value() <= *bytes);
}

}  // namespace farstep
