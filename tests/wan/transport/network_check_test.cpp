#include "wan/transport/network_check.h"

#include <atomic>

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/config/json_fields.h"
#include "wan/sockets/tcp.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// What ends a site at the start of a run.
std::string config_error(const MeshOptions& mesh, Store& store) {
  try {
    require_links(check_network(mesh, store).faults, mesh, LinkStage::kStart);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Passes on what sites publish, except that one of them advertises another address or other ports.
class LyingStore : public MemoryStore {
 public:
  LyingStore(std::string key, std::string member, Json value)
      : MemoryStore(5), key_(std::move(key)), member_(std::move(member)), value_(value) {}
  void put(const std::string& key, const std::string& value) override {
    if (key != key_) return MemoryStore::put(key, value);
    auto json = Json::parse(value);
    json[member_] = value_;
    MemoryStore::put(key, json.dump());
  }

 private:
  const std::string key_, member_;
  const Json value_;
};

}  // namespace

TEST_CASE("sites that reach each other pass and learn their links") {
  for (const int n : {1, 2, 4}) {
    MemoryStore store(5);
    const auto links =
        run_ranks(n, [&](int rank) { return check_network(loopback_mesh(n, rank), store).links; });
    for (int rank = 0; rank < n; ++rank) {
      REQUIRE(links[rank].size() == static_cast<std::size_t>(n));
      for (int peer = 0; peer < n; ++peer) {
        if (peer == rank) continue;
        CHECK(links[rank][peer].source_address == "127.0.0.1");
        CHECK(links[rank][peer].rtt_seconds > 0);
        CHECK(links[rank][peer].rtt_seconds < 0.1);
      }
    }
  }
}

TEST_CASE("a link's source address is what the peer sees and not what is advertised") {
  MemoryStore store(5);
  const auto links = run_ranks(2, [&](int rank) {
    return check_network(loopback_mesh(2, rank, rank == 0 ? "127.0.0.1" : "127.0.0.2"), store)
        .links;
  });
  CHECK(links[0][1].source_address == "127.0.0.1");
}

TEST_CASE("an advertised address where nobody listens fails all sites with both names") {
  const int closed =
      SocketAddress::local_of(listen_tcp(SocketAddress("127.0.0.1", 0)).fd())->port();
  LyingStore store("network/7/notice/1", "ports", {closed, closed, closed});
  const auto errors =
      run_ranks(3, [&](int rank) { return config_error(loopback_mesh(3, rank), store); });
  CHECK_THAT(errors[0], Catch::StartsWith("network.address: node2 advertises 127.0.0.1:") &&
                            Catch::Contains("which node1 cannot reach (Connection refused") &&
                            Catch::Contains("which node3 cannot reach (Connection refused"));
  CHECK(errors[1] == errors[0]);
  CHECK(errors[2] == errors[0]);
}

TEST_CASE("a site that ends after a failed check leaves the others its verdict") {
  // The store goes with the first site that ends, as with the one that hosts the coordinator.
  class Mortal : public LyingStore {
   public:
    using LyingStore::LyingStore;
    std::string get(const std::string& key) override {
      if (is_gone) throw PeerError("", "the store has gone");
      return LyingStore::get(key);
    }
    std::atomic<bool> is_gone = false;
  };
  const int closed =
      SocketAddress::local_of(listen_tcp(SocketAddress("127.0.0.1", 0)).fd())->port();
  Mortal store("network/7/notice/1", "ports", {closed, closed});
  const auto errors = run_ranks(2, [&](int rank) {
    const auto error = config_error(loopback_mesh(2, rank), store);
    store.is_gone = true;
    return error;
  });
  CHECK_THAT(errors[0], Catch::StartsWith("network.address: node2 advertises 127.0.0.1:"));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("an advertised address that does not answer fails after connect_seconds") {
  // A full backlog swallows connections, as a firewall does.
  const Socket deaf(::socket(AF_INET, SOCK_STREAM, 0));
  const SocketAddress any("127.0.0.1", 0);
  REQUIRE(::bind(deaf.fd(), any.get(), any.size()) == 0);
  REQUIRE(::listen(deaf.fd(), 0) == 0);
  const auto address = *SocketAddress::local_of(deaf.fd());
  const auto filling = connect_tcp(address, deadline_after(1));
  LyingStore store("network/7/notice/1", "ports", {address.port(), address.port()});
  const auto errors = run_ranks(2, [&](int rank) {
    auto mesh = loopback_mesh(2, rank);
    mesh.connect_seconds = 0.2;
    return config_error(mesh, store);
  });
  CHECK_THAT(errors[0], Catch::Contains("which node1 cannot reach (timed out, 0.2 s allowed)"));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("an advertised address where another site answers is found out") {
  MemoryStore inner(5);
  // Node2 advertises the ports of node3, as when both are behind one address.
  class Swapped : public Store {
   public:
    explicit Swapped(Store& inner) : inner_(inner) {}
    void put(const std::string& key, const std::string& value) override { inner_.put(key, value); }
    std::string get(const std::string& key) override {
      auto value = inner_.get(key);
      if (key != "network/7/notice/1") return value;
      auto notice = Json::parse(value);
      notice["ports"] = Json::parse(inner_.get("network/7/notice/2"))["ports"];
      return notice.dump();
    }

   private:
    Store& inner_;
  } store(inner);
  const auto errors =
      run_ranks(3, [&](int rank) { return config_error(loopback_mesh(3, rank), store); });
  CHECK_THAT(errors[0], Catch::Contains("which node1 cannot reach (answered by node3"));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("sites with addresses of different IP versions are told so") {
  LyingStore store("network/7/notice/1", "address", "::1");
  const auto errors =
      run_ranks(2, [&](int rank) { return config_error(loopback_mesh(2, rank), store); });
  CHECK_THAT(errors[0], Catch::Contains("which is IPv6, and node1 advertises 127."));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("strangers on the port disturb nobody") {
  // They come between the notices and the probes, silent and talkative ones.
  class Visited : public MemoryStore {
   public:
    Visited() : MemoryStore(5) {}
    void put(const std::string& key, const std::string& value) override {
      if (key == "network/7/notice/0") {
        const SocketAddress port("127.0.0.1", Json::parse(value)["ports"][1].get<int>());
        for (int i = 0; i < 10; ++i) {
          strangers_.push_back(connect_tcp(port, deadline_after(1)));
          if (i % 2 == 0) send_line(strangers_.back(), "GET / HTTP/1.0", deadline_after(1));
        }
      }
      MemoryStore::put(key, value);
    }

   private:
    std::vector<Socket> strangers_;
  } store;
  const auto errors =
      run_ranks(2, [&](int rank) { return config_error(loopback_mesh(2, rank), store); });
  CHECK(errors == std::vector<std::string>{"", ""});
}

TEST_CASE("a port that is taken, of any lane, fails all sites for now") {
  const auto taken = listen_tcp(SocketAddress("127.0.0.1", 0));
  for (const int lane : {0, 1}) {
    MemoryStore store(5);
    const auto errors = run_ranks(2, [&](int rank) {
      auto mesh = loopback_mesh(2, rank);
      mesh.lanes = 2;
      // The first site listens for the second one two ports further, for the lane behind it three.
      if (rank == 0) mesh.port = SocketAddress::local_of(taken.fd())->port() - 2 - lane;
      return peer_error(
          [&] { require_links(check_network(mesh, store).faults, mesh, LinkStage::kStart); });
    });
    CHECK_THAT(errors[0],
               Catch::StartsWith("node1: network.port: node1 cannot listen on 127.0.0.1:"));
    CHECK(errors[1] == errors[0]);
  }
}

TEST_CASE("all sites find the same faults, whoever of them cannot be reached") {
  const int closed =
      SocketAddress::local_of(listen_tcp(SocketAddress("127.0.0.1", 0)).fd())->port();
  LyingStore store("network/7/notice/1", "ports", {closed, closed, closed});
  const auto found =
      run_ranks(3, [&](int rank) { return check_network(loopback_mesh(3, rank), store); });
  for (const auto& [links, faults] : found) {
    CHECK(links.empty());
    REQUIRE(faults.size() == 2);
    CHECK((faults[0].site == 0 && faults[0].peer == 1));
    CHECK((faults[1].site == 2 && faults[1].peer == 1));
    CHECK(text_of(faults) == text_of(found[0].faults));
  }
}
