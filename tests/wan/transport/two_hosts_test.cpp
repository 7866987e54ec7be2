#include "tests/wan/transport/two_hosts.h"

#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/wan/transport/meshes.h"
#include "wan/sockets/local_address.h"
#include "wan/transport/network_check.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

bool skipped() {
  const auto obstacle = two_hosts_obstacle();
  if (!obstacle.empty()) skip_test(obstacle);
  return !obstacle.empty();
}

// What a site does before and in its first exchange: where its peer came from, and what arrived.
std::string meet(const MeshOptions& mesh, Store& store) {
  const auto found = check_network(mesh, store);
  require_links(found.faults, mesh, LinkStage::kStart);
  const auto& links = found.links;
  GlooTransport transport(mesh, links, 5, store);
  const int peer = 1 - mesh.rank;
  const auto outgoing = pattern(mesh.rank, peer, 1 << 20);
  std::vector<std::byte> incoming(1 << 20);
  auto receive = transport.receive(peer, {.phase = 1}, incoming);
  auto send = transport.send(peer, {.phase = 1}, outgoing);
  receive->wait();
  send->wait();
  // The peer has what it waits for before this transport is destroyed.
  store.put("done/" + std::to_string(mesh.rank), "");
  store.get("done/" + std::to_string(peer));
  return fmt::format("{} {}", links[peer].source_address,
                     incoming == pattern(peer, mesh.rank, 1 << 20) ? "right" : "wrong");
}

}  // namespace

TEST_CASE("two machines meet at the address of a named interface") {
  if (skipped()) return;
  const auto text = run_two_hosts([](int rank, Store& store) {
    return meet(loopback_mesh(2, rank, resolve_address("", "cable")), store);
  });
  CHECK(text == "0: 10.77.0.2 right\n1: 10.77.0.1 right\n");
}

TEST_CASE("two machines meet at fixed ports") {
  if (skipped()) return;
  const auto text = run_two_hosts([](int rank, Store& store) {
    auto mesh = loopback_mesh(2, rank, resolve_address(rank == 0 ? "10.77.0.1" : "10.77.0.2", ""));
    mesh.port = 4000;
    return meet(mesh, store);
  });
  CHECK(text == "0: 10.77.0.2 right\n1: 10.77.0.1 right\n");
}

TEST_CASE("two machines meet over IPv6") {
  if (skipped()) return;
  const auto text = run_two_hosts([](int rank, Store& store) {
    auto mesh = loopback_mesh(2, rank, resolve_address(rank == 0 ? "fd77::1" : "fd77::2", ""));
    mesh.port = 4000;
    return meet(mesh, store);
  });
  CHECK(text == "0: fd77::2 right\n1: fd77::1 right\n");
}

TEST_CASE("a remote site that advertises its loopback address is told so on both machines") {
  if (skipped()) return;
  const auto text = run_two_hosts([](int rank, Store& store) {
    return meet(loopback_mesh(2, rank, rank == 0 ? "10.77.0.1" : "127.0.0.1"), store);
  });
  CHECK_THAT(text, Catch::Contains("0: network.address: node2 advertises 127.0.0.1:") &&
                       Catch::Contains("1: network.address: node2 advertises 127.0.0.1:") &&
                       Catch::Contains("which node1 cannot reach (Connection refused") &&
                       Catch::Contains("set network.address of node2 to one that reaches beyond"));
}

TEST_CASE("two remote sites that advertise the same loopback ports do not mistake themselves") {
  if (skipped()) return;
  const auto text = run_two_hosts([](int rank, Store& store) {
    auto mesh = loopback_mesh(2, rank, "127.0.0.1");
    mesh.port = 4000;
    return meet(mesh, store);
  });
  CHECK_THAT(text,
             Catch::Contains("node2 advertises 127.0.0.1:4000, which node1 cannot reach") &&
                 Catch::Contains("node1 advertises 127.0.0.1:4001, which node2 cannot reach"));
}
