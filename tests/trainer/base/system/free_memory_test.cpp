#include "trainer/base/system/free_memory.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"

namespace farstep {

namespace {

// A machine of its own: what /proc and /sys would say.
class FakeMachine {
 public:
  void set(const std::string& path, const std::string& text) {
    const auto file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    write_file(file, text);
  }
  std::optional<int64_t> free() const { return free_memory_bytes(root_.path()); }

 private:
  TemporaryFolder root_;
};

}  // namespace

TEST_CASE("free memory is what the kernel and every control group leave") {
  FakeMachine machine;
  CHECK_FALSE(machine.free());
  machine.set("proc/meminfo",
              "MemTotal:       8000000 kB\nMemFree:        1000000 kB\n"
              "MemAvailable:   4000000 kB\nSwapFree:       1000000 kB\n");
  CHECK(machine.free() == int64_t{5'000'000} * 1024);
  machine.set("proc/self/cgroup", "0::/batch/job\n");
  machine.set("sys/fs/cgroup/batch/job/memory.max", "max\n");
  machine.set("sys/fs/cgroup/batch/job/memory.current", "5000\n");
  CHECK(machine.free() == int64_t{5'000'000} * 1024);
  // A group above limits too; files that it caches can go.
  machine.set("sys/fs/cgroup/batch/memory.max", "1000000\n");
  machine.set("sys/fs/cgroup/batch/memory.current", "900000\n");
  machine.set("sys/fs/cgroup/batch/memory.stat", "anon 800000\ninactive_file 70000\nfile 90000\n");
  CHECK(machine.free() == 170'000);
  // In a container the own group is the top.
  machine.set("proc/self/cgroup", "0::/\n");
  machine.set("sys/fs/cgroup/memory.max", "3000\n");
  machine.set("sys/fs/cgroup/memory.current", "4000\n");
  CHECK(machine.free() == 0);
}

TEST_CASE("this machine has free memory") {
  const auto bytes = free_memory_bytes();
  REQUIRE(bytes);
  CHECK(*bytes > int64_t{1} << 20);
}

}  // namespace farstep
