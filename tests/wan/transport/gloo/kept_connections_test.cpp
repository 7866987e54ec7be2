#include "wan/transport/gloo/kept_connections.h"

#include <sys/socket.h>

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"
#include "wan/sockets/process_sockets.h"
#include "wan/transport/network_check.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// The sites of a run in one process, which make one mesh after the other.
class Sites {
 public:
  explicit Sites(int n, int lanes = 1, std::string address = "127.0.0.1", int port = 0)
      : lanes_(lanes), address_(std::move(address)), port_(port), kept_(n), transports_(n) {
    for (auto& kept : kept_) kept = std::make_unique<KeptConnections>();
  }
  ~Sites() { transports_.clear(); }

  // Makes the next mesh, of these sites. Returns what each of them threw, or whom it keeps.
  std::vector<std::string> meet(const std::vector<int>& members) {
    ++generation_;
    for (auto& transport : transports_) transport.reset();
    return run_ranks(static_cast<int>(members.size()), [&](int rank) {
      const auto site = static_cast<std::size_t>(members[static_cast<std::size_t>(rank)]);
      MeshOptions mesh;
      mesh.rank = rank;
      for (const int member : members) mesh.sites.push_back(std::string(1, char('a' + member)));
      mesh.address = address_;
      mesh.port = port_ == 0 ? 0 : port_ + 20 * static_cast<int>(site);
      mesh.lanes = lanes_;
      mesh.generation = generation_;
      mesh.connect_seconds = 5;
      std::string kept;
      const auto error = peer_error([&] {
        const auto links = check_network(mesh, store_, kept_[site]->offer(mesh)).links;
        for (std::size_t peer = 0; peer < links.size(); ++peer) {
          if (links[peer].is_kept) kept += mesh.sites[peer];
        }
        transports_[site] =
            std::make_unique<GlooTransport>(mesh, links, 20, store_, kept_[site].get());
      });
      return error.empty() ? kept : error;
    });
  }
  // A new process takes the place of a site's.
  void restart(int site) {
    transports_[site].reset();
    kept_[site] = std::make_unique<KeptConnections>();
  }
  // Every member sends every other one a message over each lane. Returns whether all arrived.
  bool talk() {
    std::vector<Transport*> mesh;
    for (auto& transport : transports_) {
      if (transport) mesh.push_back(transport.get());
    }
    std::ranges::sort(mesh, {}, &Transport::rank);
    const auto arrived = run_ranks(static_cast<int>(mesh.size()), [&](int rank) {
      std::vector<std::unique_ptr<Transfer>> transfers;
      std::vector<std::vector<std::byte>> sent, received(mesh.size() * lanes_);
      for (auto& bytes : received) bytes.resize(1001);
      sent.reserve(received.size());
      for (int peer = 0; peer < std::ssize(mesh); ++peer) {
        for (int lane = 0; peer != rank && lane < lanes_; ++lane) {
          const Tag tag{.generation = generation_, .chunk = static_cast<uint32_t>(lane)};
          sent.push_back(pattern(rank, peer, 1001, lane));
          transfers.push_back(mesh[rank]->receive(
              peer, tag, received[static_cast<std::size_t>(peer * lanes_ + lane)]));
          transfers.push_back(mesh[rank]->send(peer, tag, sent.back()));
        }
      }
      for (auto& transfer : transfers) transfer->wait();
      bool are_right = true;
      for (int peer = 0; peer < std::ssize(mesh); ++peer) {
        for (int lane = 0; peer != rank && lane < lanes_; ++lane) {
          are_right &= received[static_cast<std::size_t>(peer * lanes_ + lane)] ==
                       pattern(peer, rank, 1001, lane);
        }
      }
      return are_right;
    });
    return std::ranges::all_of(arrived, [](bool is_right) { return is_right; });
  }
  GlooTransport& at(int site) { return *transports_[site]; }

 private:
  const int lanes_;
  const std::string address_;
  const int port_;
  uint64_t generation_ = 0;
  MemoryStore store_{10};
  std::vector<std::unique_ptr<KeptConnections>> kept_;
  std::vector<std::unique_ptr<GlooTransport>> transports_;
};

using Words = std::vector<std::string>;

// How many connections this process has. Each counts twice, as both ends are here.
std::size_t num_connections() {
  return static_cast<std::size_t>(
      std::ranges::count_if(process_sockets(), [](const auto& socket) { return !!socket.remote; }));
}

}  // namespace

TEST_CASE("connections of members that stay are kept when a site goes and comes back") {
  for (const int lanes : {1, 2}) {
    Sites sites(4, lanes);
    CHECK(sites.meet({0, 1, 2, 3}) == Words{"", "", "", ""});
    CHECK(sites.talk());
    const auto all = num_connections();
    sites.restart(1);
    CHECK(sites.meet({0, 2, 3}) == Words{"cd", "ad", "ac"});  // the ranks of c and d change
    CHECK(sites.talk());
    CHECK(num_connections() == all / 2);  // of six pairs three
    CHECK(sites.meet({0, 1, 2, 3}) == Words{"cd", "", "ad", "ac"});
    CHECK(sites.talk());
    CHECK(sites.meet({0, 1, 2, 3}) == Words{"bcd", "acd", "abd", "abc"});
    CHECK(sites.talk());
    CHECK(num_connections() == all);
  }
}

TEST_CASE("connections are kept at chosen ports, whose owners change with the ranks") {
  const int port = 24'000;
  Sites sites(3, 1, "127.0.0.1", port);
  REQUIRE(sites.meet({0, 1, 2}) == Words{"", "", ""});
  CHECK(sites.meet({1, 2}) == Words{"c", "b"});
  CHECK(sites.talk());
  sites.restart(0);
  CHECK(sites.meet({0, 1, 2}) == Words{"", "c", "b"});
  CHECK(sites.talk());
}

TEST_CASE("a connection with a message under way is made anew") {
  Sites sites(3);
  REQUIRE(sites.meet({0, 1, 2}) == Words{"", "", ""});
  std::vector<std::byte> bytes(64);
  {
    // The sync of a waits for b, and is ended because c is lost.
    const auto waiting = sites.at(0).receive(1, {.generation = 1}, bytes);
    sites.at(0).abort("c", "it is silent");
    CHECK_THROWS_AS(waiting->wait(), PeerError);
  }
  sites.restart(2);
  CHECK(sites.meet({0, 1}) == Words{"", ""});
  CHECK(sites.talk());
}

TEST_CASE("a mesh that was ended between two messages keeps its connections") {
  Sites sites(3);
  REQUIRE(sites.meet({0, 1, 2}) == Words{"", "", ""});
  CHECK(sites.talk());
  sites.at(0).abort("c", "it is silent");
  sites.at(1).abort("c", "it is silent");
  sites.restart(2);
  CHECK(sites.meet({0, 1}) == Words{"b", "a"});
  CHECK(sites.talk());
}

// The farewells of the first mesh are read late, by nobody, and the second mesh has its own.
TEST_CASE("a farewell names the lost site in each mesh, by the ranks of that mesh") {
  Sites sites(4);
  REQUIRE(sites.meet({0, 1, 2, 3}) == Words{"", "", "", ""});
  for (int i = 0; i < 2; ++i) sites.at(i).abort("d", "it is silent");
  CHECK(sites.meet({1, 2, 0}) == Words{"ca", "ba", "bc"});
  std::vector<std::byte> bytes(64);
  const auto waiting = sites.at(2).receive(0, {}, bytes);  // from b
  sites.at(1).abort("a", "it is silent");
  CHECK(peer_error([&] { waiting->wait(); }) == "a: b told c that it lost a");
}

TEST_CASE("a site that goes is noticed over a kept connection") {
  Sites sites(2);
  REQUIRE(sites.meet({0, 1}) == Words{"", ""});
  REQUIRE(sites.meet({0, 1}) == Words{"b", "a"});
  std::vector<std::byte> bytes(64);
  const auto waiting = sites.at(0).receive(1, {}, bytes);
  sites.restart(1);
  CHECK_THAT(peer_error([&] { waiting->wait(); }), Catch::StartsWith("b: "));
}

TEST_CASE("a connection that broke between two meshes is made anew") {
  Sites sites(2);
  REQUIRE(sites.meet({0, 1}) == Words{"", ""});
  for (const auto& socket : process_sockets()) {
    // Gloo closes one end as soon as the other is shut.
    if (socket.remote) ::shutdown(socket.fd, SHUT_RDWR);
  }
  CHECK(sites.meet({0, 1}) == Words{"", ""});
  CHECK(sites.talk());
}

TEST_CASE("a kept connection over which nothing comes is named in time, and made anew") {
  KeptConnections kept[2];
  MemoryStore store(10);
  const auto found_in = [&](int rank, const MeshOptions& mesh) {
    return check_network(mesh, store, kept[rank].offer(mesh)).links;
  };
  const auto meet = [&](uint64_t generation, bool is_second_there) {
    return run_ranks(2, [&](int rank) -> std::string {
      auto mesh = loopback_mesh(2, rank);
      mesh.generation = generation;
      if (!is_second_there) mesh.connect_seconds = 0.3;
      return peer_error([&] {
        const auto links = found_in(rank, mesh);
        if (rank == 0 || is_second_there) GlooTransport(mesh, links, 20, store, &kept[rank]);
      });
    });
  };
  CHECK(meet(1, true) == Words{"", ""});
  CHECK(meet(2, false) == Words{"node2: the connection of node1 to node2 failed: no progress of a "
                                "message for 0.3 s",
                                ""});
  CHECK(meet(3, true) == Words{"", ""});
}

TEST_CASE("another address or number of lanes makes all connections anew") {
  KeptConnections kept[2];
  MemoryStore store(10);
  uint64_t generation = 0;
  const auto num_kept = [&](const std::string& address, int lanes) {
    ++generation;
    const auto found = run_ranks(2, [&](int rank) {
      auto mesh = loopback_mesh(2, rank, address);
      mesh.lanes = lanes;
      mesh.generation = generation;
      const auto links = check_network(mesh, store, kept[rank].offer(mesh)).links;
      GlooTransport transport(mesh, links, 20, store, &kept[rank]);
      return static_cast<int>(links[1 - rank].is_kept);
    });
    return found[0] + found[1];
  };
  CHECK(num_kept("127.0.0.1", 1) == 0);
  CHECK(num_kept("127.0.0.1", 1) == 2);
  CHECK(num_kept("127.0.0.1", 2) == 0);
  CHECK(num_kept("127.0.0.2", 2) == 0);
  CHECK(num_kept("127.0.0.2", 2) == 2);
}

TEST_CASE("figures of a mesh do not count what earlier ones sent over the same connection") {
  Sites sites(2);
  REQUIRE(sites.meet({0, 1}) == Words{"", ""});
  for (int i = 0; i < 100; ++i) sites.talk();
  const auto before = sites.at(0).link(1);
  CHECK(before.sent_bytes == 100 * 1001);
  REQUIRE(sites.meet({0, 1}) == Words{"b", "a"});
  CHECK(sites.at(0).link(1).sent_bytes == 0);
  CHECK(sites.at(0).link(1).socket_sent_bytes < 1001);
  CHECK(sites.talk());
  const auto after = sites.at(0).link(1);
  CHECK(after.sent_bytes == 1001);
  CHECK(after.socket_sent_bytes >= 1001);
  CHECK(after.socket_sent_bytes < 2002);
}
