#include "trainer/base/processor/usable_cores.h"

#include <iterator>

#include "tests/support/catch.h"
#include "tests/support/fake_machine.h"
#include "trainer/base/processor/allowed_cores.h"

namespace farstep {

TEST_CASE("without a quota all cores of the affinity are usable") {
  FakeMachine machine;
  CHECK_FALSE(core_quota(machine.root()));
  machine.set("proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/job\n");
  machine.set("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  machine.set("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  machine.set("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(core_quota(machine.root()));
  CHECK(usable_cores(machine.root()) == std::ssize(allowed_cores()));
}

TEST_CASE("the least quota of all groups holds, rounded down, and at least one core") {
  FakeMachine machine;
  machine.set("proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/batch/job\n");
  machine.set("sys/fs/cgroup/batch/job/cpu.max", "250000 100000\n");
  CHECK(core_quota(machine.root()) == 2.5);
  machine.set("sys/fs/cgroup/batch/cpu.max", "95000 50000\n");
  CHECK(core_quota(machine.root()) == 1.9);
  CHECK(usable_cores(machine.root()) == 1);
  machine.set("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "30000\n");
  machine.set("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  CHECK(core_quota(machine.root()) == 0.3);
  CHECK(usable_cores(machine.root()) == 1);
}

TEST_CASE("a quota beyond the affinity adds no core") {
  FakeMachine machine;
  machine.set("proc/self/cgroup", "0::/\n");
  machine.set("sys/fs/cgroup/cpu.max", "100000000 100000\n");
  CHECK(usable_cores(machine.root()) == std::ssize(allowed_cores()));
}

}  // namespace farstep
