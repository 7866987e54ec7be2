#include "tests/wan/transport/two_hosts.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

constexpr double kStoreSeconds = 20;

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Lets a host live in a namespace of its own, at one end of the cable.
std::string live_apart(int rank, Store& store, const Host& host) {
  FARSTEP_CHECK(unshare(CLONE_NEWNET) == 0, "no network namespace");
  store.put(fmt::format("host {} lives", rank), "");
  store.get("cable");
  for (const auto& command : {std::string("ip link set lo up"), std::string("ip link set cable up"),
                              fmt::format("ip addr add 10.77.0.{}/24 dev cable", rank + 1),
                              fmt::format("ip addr add fd77::{}/64 dev cable nodad", rank + 1)}) {
    FARSTEP_CHECK(shell(command), "{} failed", command);
  }
  std::string said;
  try {
    said = host(rank, store);
  } catch (const std::exception& error) {
    said = error.what();
  }
  // The cable goes with the first of its two ends.
  store.put(fmt::format("host {} is done", rank), "");
  store.get(fmt::format("host {} is done", 1 - rank));
  return said;
}

}  // namespace

std::string two_hosts_obstacle() {
  if (geteuid() != 0) return "network namespaces need root";
  if (!shell("ip -V")) return "there is no ip program (iproute2)";
  return shell("unshare --net ip link add name a type veth peer name b")
             ? ""
             : "network namespaces with veth interfaces cannot be made here";
}

std::string run_two_hosts(const Host& host) {
  const auto said = run_hosts(
      2, [&](int rank, Store& store) { return live_apart(rank, store, host); }, kStoreSeconds,
      [](Store& store, const std::vector<pid_t>& pids) {
        store.get("host 0 lives");
        store.get("host 1 lives");
        // A host without a cable says so itself.
        shell(fmt::format("ip link add name cable netns {} type veth peer name cable netns {}",
                          pids[0], pids[1]));
        store.put("cable", "");
      });
  return fmt::format("0: {}\n1: {}\n", said[0], said[1]);
}

}  // namespace farstep::wan
