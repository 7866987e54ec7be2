#include "wan/transport/gloo/gloo_ring.h"

#include <thread>

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/wan/transport/hosts.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

std::vector<std::unique_ptr<GlooRing>> ring(int n) {
  MemoryStore store(10);
  return run_ranks(
      n, [&](int rank) { return std::make_unique<GlooRing>(loopback_mesh(n, rank), 5, store); });
}

}  // namespace

TEST_CASE("the ring sums the sites' values whatever their number") {
  for (int n = 1; n <= 4; ++n) {
    const auto sites = ring(n);
    for (const std::size_t size : {0, 1, 3, 1001, 300'000}) {
      const auto sums = run_ranks(n, [&](int rank) {
        std::vector<float> values(size);
        for (std::size_t k = 0; k < size; ++k) values[k] = static_cast<float>(k % 100) + rank;
        sites[rank]->all_reduce(values);
        return values;
      });
      for (std::size_t k = 0; k < size; ++k) {
        REQUIRE(sums[0][k] == static_cast<float>(n) * static_cast<float>(k % 100) +
                                  static_cast<float>(n * (n - 1) / 2));
      }
      for (const auto& sum : sums) REQUIRE(sum == sums[0]);
    }
  }
}

TEST_CASE("the kernel counts the bytes of a process's ring") {
  const auto sent = run_hosts(
      2,
      [](int rank, Store& store) {
        GlooRing site(loopback_mesh(2, rank), 5, store);
        std::vector<float> values(1 << 20);
        site.all_reduce(values);
        // Only when the other has all of it has the kernel sent it.
        store.put("done/" + std::to_string(rank), "");
        store.get("done/" + std::to_string(1 - rank));
        const auto bytes = site.socket_bytes().sent;
        store.put("counted/" + std::to_string(rank), "");
        store.get("counted/" + std::to_string(1 - rank));
        return std::to_string(bytes);
      },
      10);
  for (const auto& bytes : sent) {
    CHECK(std::stol(bytes) > 4 << 20);
    CHECK(std::stol(bytes) < (4 << 20) * 1.05);
  }
}

TEST_CASE("a ring ends everywhere when one site ends it, which knows who was lost") {
  const auto sites = ring(3);
  const auto errors = run_ranks(3, [&](int rank) -> std::string {
    if (rank == 2) {
      sites[0]->abort("node3", "no heartbeat");
      return "";
    }
    std::vector<float> values(1000);
    return peer_error([&] { sites[rank]->all_reduce(values); });
  });
  CHECK(errors[0] == "node3: no heartbeat");
  // Gloo does not tell which connection broke.
  CHECK_THAT(errors[1], Catch::StartsWith(": the ring of Gloo broke"));
  // The first reason stays.
  sites[1]->abort("node3", "no heartbeat");
  std::vector<float> values(1000);
  CHECK(peer_error([&] { sites[1]->all_reduce(values); }) == errors[1]);
}

// The deadline of the hosts is far below the ring's own: only abort() can end the wait in time.
TEST_CASE("a wait for a frozen site ends when the ring is aborted") {
  const auto results = run_hosts(
      2,
      [](int rank, Store& store) -> std::string {
        GlooRing site(loopback_mesh(2, rank), 600, store);
        if (rank == 1) {
          // This site takes no part. The other one's first bytes show that it waits.
          while (site.socket_bytes().received == 0) std::this_thread::yield();
          store.put("waiting", "");
          store.get("ended");
          return "";
        }
        const std::jthread control([&] {
          store.get("waiting");
          site.abort("node2", "no heartbeat");
        });
        std::vector<float> values(1000);
        const auto error = peer_error([&] { site.all_reduce(values); });
        store.put("ended", "");
        return error;
      },
      10);
  CHECK(results[0] == "node2: no heartbeat");
}

TEST_CASE("a ring that was aborted before names who was lost") {
  const auto sites = ring(2);
  for (const auto& site : sites) site->abort("node3", "no heartbeat");
  for (const auto& site : sites) {
    std::vector<float> values(1000);
    CHECK(peer_error([&] { site->all_reduce(values); }) == "node3: no heartbeat");
  }
}
