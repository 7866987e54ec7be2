#include "trainer/base/system/control_groups.h"

#include "tests/support/catch.h"
#include "tests/support/fake_machine.h"

namespace farstep {

namespace {

// The folders below sys/fs/cgroup, "." for that one itself.
std::vector<std::string> groups(const FakeMachine& machine, std::string_view controller) {
  std::vector<std::string> found;
  for (const auto& folder : control_groups(controller, machine.root())) {
    found.push_back(folder.lexically_relative(machine.root() / "sys/fs/cgroup").string());
  }
  return found;
}

}  // namespace

TEST_CASE("a system without control groups has none") {
  CHECK(groups(FakeMachine(), "cpu").empty());
}

TEST_CASE("all groups above a process's own limit it too") {
  FakeMachine machine;
  machine.set("proc/self/cgroup", "0::/system.slice/farstep.service\n");
  CHECK(groups(machine, "cpu") ==
        std::vector<std::string>{"system.slice/farstep.service", "system.slice", "."});
  machine.set("proc/self/cgroup", "0::/\n");
  CHECK(groups(machine, "memory") == std::vector<std::string>{"."});
}

TEST_CASE("version 1 has a hierarchy for each list of controllers") {
  FakeMachine machine;
  machine.set("proc/self/cgroup",
              "12:cpuset:/a\n4:cpu,cpuacct:/docker/b:c\n3:memory:/docker/b\n"
              "1:name=systemd:/d\n0::/e\n");
  CHECK(groups(machine, "cpu") == std::vector<std::string>{"cpu,cpuacct/docker/b:c",
                                                           "cpu,cpuacct/docker", "cpu,cpuacct", "e",
                                                           "."});
  CHECK(groups(machine, "memory") ==
        std::vector<std::string>{"memory/docker/b", "memory/docker", "memory", "e", "."});
}

}  // namespace farstep
