#include "wan/tunnel/tunnel_check.h"

#include <future>

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/wan/secure/sites.h"
#include "tests/wan/transport/cuttable_link.h"
#include "trainer/base/error.h"

namespace farstep::wan {
namespace {

using Catch::Contains;

constexpr double kCheckSeconds = 60;

MeshOptions mesh_of(int rank, double connect_seconds) {
  MeshOptions mesh;
  mesh.rank = rank;
  mesh.sites = {"busan", "lyon", "seoul"};
  mesh.connect_seconds = connect_seconds;
  return mesh;
}

NetworkFindings check(const MeshOptions& mesh, Gateway& gateway, Store& store) {
  return check_tunnels(mesh, SocketAddress("127.0.0.1", gateway.port()), gateway, store);
}

TEST_CASE("sites with keys find a link to each other") {
  const Authority authority;
  const RealClock clock;
  MemoryStore store(kCheckSeconds);
  std::vector<std::future<std::vector<PeerLink>>> sites;
  for (int rank = 0; rank < 3; ++rank) {
    sites.push_back(std::async(std::launch::async, [&, rank] {
      const auto mesh = mesh_of(rank, kCheckSeconds);
      Gateway gateway(kAnyPort, authority.credentials(mesh.sites[rank]), clock);
      auto found = check(mesh, gateway, store).links;
      // A gateway that ends takes its tunnels along.
      wait_until_all_know(store, "done", rank, mesh.size());
      return found;
    }));
  }
  for (int rank = 0; rank < 3; ++rank) {
    const auto found = sites[rank].get();
    REQUIRE(found.size() == 3);
    for (int peer = 0; peer < 3; ++peer) {
      CHECK(found[peer].source_address == (peer == rank ? "" : loopback_ip(peer)));
    }
  }
}

TEST_CASE("a site that does not answer is the only one that the others cannot reach") {
  const Authority authority;
  const RealClock clock;
  MemoryStore store(kCheckSeconds);
  // Busan takes connections and says nothing. It comes first, so all wait for it before the others.
  const auto busan = listen_tcp(kAnyPort.front());
  const auto port = SocketAddress::local_of(busan.fd())->port();
  store.put("tunnel/0/notice/0", fmt::format("127.0.0.1 {}", port));
  store.put("tunnel/0/verdict/0", text_of(std::vector<LinkFault>{}));
  store.put("tunnel/0/known/0", "");
  const auto failure_of = [&](int rank) -> std::string {
    const auto mesh = mesh_of(rank, 2);
    Gateway gateway(kAnyPort, authority.credentials(mesh.sites[rank]), clock);
    try {
      require_links(check(mesh, gateway, store).faults, mesh, LinkStage::kStart);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  auto lyon = std::async(std::launch::async, [&] { return failure_of(1); });
  const auto failures = failure_of(2);
  CHECK(lyon.get() == failures);
  CHECK_THAT(failures, Contains("no secure link between lyon") && Contains("and busan"));
  CHECK_THAT(failures, Contains("no secure link between seoul") && Contains("and busan"));
  CHECK_THAT(failures, !Contains("and seoul") && !Contains("and lyon"));
}

// A link that is out for longer than a check takes was the end of the run.
TEST_CASE(
    "a link that is out is a fault at both ends as long as it is, and whole when it is back") {
  const Authority authority;
  const RealClock clock;
  MemoryStore store(kCheckSeconds);
  Gateway busan(kAnyPort, authority.credentials("busan"), clock);
  Gateway lyon(kAnyPort, authority.credentials("lyon"), clock);
  CuttableLink line(lyon.port());
  const auto check_both = [&](uint64_t generation, double connect_seconds) {
    auto mesh = mesh_of(0, connect_seconds);
    mesh.sites = {"busan", "lyon"};
    mesh.generation = generation;
    auto other = std::async(std::launch::async, [&, mesh]() mutable {
      mesh.rank = 1;
      return check_tunnels(mesh, line.address(), lyon, store);
    });
    const auto own = check_tunnels(mesh, std::nullopt, busan, store);
    CHECK(text_of(other.get().faults) == text_of(own.faults));
    return own;
  };
  CHECK(check_both(1, kCheckSeconds).faults.empty());
  line.hold(true);
  line.cut();
  // Both lanes' ends notice the cut by themselves.
  for (auto* gateway : {&busan, &lyon}) {
    const auto* peer = gateway == &busan ? "lyon" : "busan";
    const auto deadline = deadline_after(kCheckSeconds);
    while (gateway->connect(peer, kFirstDataLane, deadline_after(0)).empty()) {
      REQUIRE(milliseconds_until(deadline) > 0);
    }
  }
  for (const uint64_t generation : {2, 3}) {
    const auto found = check_both(generation, 0.5);
    CHECK(found.links.empty());
    REQUIRE(found.faults.size() == 2);
    CHECK_THAT(found.faults[0].text, Catch::StartsWith("no secure link between busan"));
    CHECK_THAT(found.faults[1].text, Catch::StartsWith("no secure link between lyon"));
  }
  line.hold(false);
  CHECK(check_both(4, kCheckSeconds).faults.empty());
}

}  // namespace
}  // namespace farstep::wan
