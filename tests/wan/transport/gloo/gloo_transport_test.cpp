#include "wan/transport/gloo/gloo_transport.h"

#include <poll.h>

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/support/skip.h"
#include "tests/wan/transport/run_ranks.h"
#include "tests/wan/transport/transport_contract.h"
#include "wan/sockets/tcp.h"
#include "wan/transport/gloo/gloo_meeting.h"
#include "wan/transport/network_notice.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

Transports loopback(int n, double stall_seconds) {
  return gloo_mesh(n, stall_seconds);
}

Transports three_lanes(int n, double stall_seconds) {
  return gloo_mesh(n, stall_seconds, "127.0.0.1", 3);
}

bool has_ipv6() {
  try {
    listen_tcp(SocketAddress("::1", 0));
  } catch (const TcpError&) {
    return false;
  }
  return true;
}

// The first of `count` ports in a row that were free a moment ago.
int free_ports(int count) {
  for (int first = 21000;; first += count) {
    try {
      std::vector<Socket> held;
      for (int i = 0; i < count; ++i) {
        held.push_back(listen_tcp(SocketAddress("127.0.0.1", first + i)));
      }
      return first;
    } catch (const TcpError&) {
      continue;  // somebody has one of them
    }
  }
}

}  // namespace

TEST_CASE("gloo transport delivers every size between all ranks") {
  for (const int n : {1, 2, 3}) {
    for (const std::size_t bytes : {0, 1, 3, 1001}) check_all_pairs(loopback, n, bytes);
  }
  check_all_pairs(loopback, 5, 1001);
}
TEST_CASE("gloo transport cuts a large message in pieces") {
  check_all_pairs(loopback, 2, 4 << 20);
  check_all_pairs(loopback, 2, (4 << 20) + 1);
  check_all_pairs(loopback, 3, (9 << 20) + 5);
}
TEST_CASE("gloo transport tells what went over its links") {
  check_links(loopback);
  check_links(three_lanes);
}
TEST_CASE("gloo transport spreads messages over its lanes") {
  for (const std::size_t bytes : {1, 1001, 1 << 20, (2 << 20) + 1, (9 << 20) + 5}) {
    check_all_pairs(three_lanes, 2, bytes);
  }
  check_all_pairs(three_lanes, 4, (2 << 20) + 1);
  check_tags(three_lanes);
  check_early_and_late(three_lanes);
}
TEST_CASE("a stream of messages of one size arrives in order whatever lanes they take") {
  const auto mesh = three_lanes(2, 20);
  std::vector<std::vector<std::byte>> received(20, std::vector<std::byte>(1001));
  run_ranks(2, [&](int rank) {
    std::vector<std::unique_ptr<Transfer>> transfers;
    std::vector<std::vector<std::byte>> sent;
    for (uint32_t chunk = 0; chunk < received.size(); ++chunk) {
      sent.push_back(pattern(0, 1, 1001, static_cast<int>(chunk)));
      const Tag tag{.generation = 7, .round = 1, .fragment = 0, .phase = 1, .chunk = chunk};
      transfers.push_back(rank == 0 ? mesh[0]->send(1, tag, sent.back())
                                    : mesh[1]->receive(0, tag, received[chunk]));
    }
    for (auto& transfer : transfers) transfer->wait();
  });
  for (std::size_t chunk = 0; chunk < received.size(); ++chunk) {
    CHECK(received[chunk] == pattern(0, 1, 1001, static_cast<int>(chunk)));
  }
}
TEST_CASE("several lanes end together") {
  check_abort(three_lanes);
  check_dying_rank(three_lanes);
  check_stall(three_lanes);
  check_given_up(three_lanes);
  check_size_mismatch(three_lanes);
}
// Its word, and the end of the connection behind it, wake two threads of the site.
TEST_CASE("a site names whom its peer has lost, and not the peer that ends because of it") {
  for (int i = 0; i < 20; ++i) {
    auto mesh = gloo_mesh(3);
    std::vector<std::byte> bytes(64);
    const auto waiting = mesh[0]->receive(1, {}, bytes);
    mesh[1]->abort("node3", "it is silent");
    mesh[1].reset();
    CHECK(peer_error([&] { waiting->wait(); }) == "node3: node2 told node1 that it lost node3");
  }
}
TEST_CASE("gloo transport keeps tags apart and messages of a tag in order") {
  check_tags(loopback);
}
TEST_CASE("gloo transport matches a receive with an earlier or a later send") {
  check_early_and_late(loopback);
}
TEST_CASE("gloo transport wakes a wait when it is aborted") {
  check_abort(loopback);
}
TEST_CASE("gloo transport names a rank that goes away") {
  check_dying_rank(loopback);
}
TEST_CASE("gloo transport names a peer that stalls") {
  check_stall(loopback);
}
TEST_CASE("gloo transport is dead after a transfer was given up") {
  check_given_up(loopback);
}
TEST_CASE("gloo transport survives sides that disagree on a size") {
  check_size_mismatch(loopback);
}

TEST_CASE("gloo transport connects over IPv6") {
  if (!has_ipv6()) {
    return skip_test("no IPv6 loopback");
  }
  check_all_pairs([](int n, double stall) { return gloo_mesh(n, stall, "::1"); }, 3, 1001);
}

TEST_CASE("the kernel counts what the transport counts") {
  const auto mesh = gloo_mesh(2);
  const std::size_t bytes = 16 << 20;
  run_ranks(2, [&](int rank) {
    const auto outgoing = pattern(rank, 1 - rank, bytes);
    std::vector<std::byte> incoming(bytes);
    auto receive = mesh[rank]->receive(1 - rank, {.phase = 1}, incoming);
    auto send = mesh[rank]->send(1 - rank, {.phase = 1}, outgoing);
    receive->wait();
    send->wait();
  });
  for (const auto& transport : mesh) {
    const auto link = transport->link(1 - transport->rank());
    CHECK(link.least_rtt_seconds > 0);
    CHECK(link.rtt_seconds >= link.least_rtt_seconds);
    CHECK(link.rtt_seconds < 1);
    CHECK(link.socket_sent_bytes >= bytes);
    CHECK(link.socket_sent_bytes <= bytes * 105 / 100);
    CHECK(link.socket_received_bytes >= bytes);
    CHECK(link.socket_received_bytes <= bytes * 105 / 100);
  }
}

TEST_CASE("gloo transport listens on the configured ports and they can be used again") {
  constexpr int kLanes = 2;
  const int first = free_ports(30);
  for (int round = 0; round < 2; ++round) {
    MemoryStore store(10);
    const auto mesh = run_ranks(3, [&](int rank) {
      auto options = loopback_mesh(3, rank);
      options.port = first + 10 * rank;
      options.lanes = kLanes;
      return std::make_unique<GlooTransport>(options, std::vector<PeerLink>{}, 10, store);
    });
    run_ranks(3, [&](int rank) {
      const auto outgoing = pattern(rank, 0, 10);
      std::vector<std::byte> incoming(10);
      auto receive = mesh[rank]->receive((rank + 2) % 3, {.phase = 1}, incoming);
      auto send = mesh[rank]->send((rank + 1) % 3, {.phase = 1}, outgoing);
      receive->wait();
      send->wait();
    });
  }
}

TEST_CASE("gloo transport may find a port free later that is taken now") {
  const auto taken = listen_tcp(SocketAddress("127.0.0.1", 0));
  auto options = loopback_mesh(2, 0);
  options.port = SocketAddress::local_of(taken.fd())->port() - 1;
  MemoryStore store(0.1);
  CHECK_THROWS_AS(GlooTransport(options, {}, 1, store), PeerError);
}

TEST_CASE("gloo transport names a peer that does not connect in time") {
  MemoryStore store(5);
  const auto silent = listen_tcp(SocketAddress("127.0.0.1", 0));  // listens, and says nothing
  const auto address = *SocketAddress::local_of(silent.fd());
  store.put("gloo/7/1", text_of({"127.0.0.1", "", {address.port(), 0}, ""}));
  auto options = loopback_mesh(2, 0);
  options.connect_seconds = 0.2;
  const auto error = peer_error([&] { GlooTransport(options, {}, 1, store); });
  CHECK_THAT(error, Catch::StartsWith("node2: "));
}

TEST_CASE("a stranger from another address cannot reach a port that waits for its peer") {
  // Node1 listens at 127.0.0.1 for node2, whose connections come from there; the stranger comes
  // from 127.0.0.9. It sees a port that does not answer, and node2 gets through all the same.
  MemoryStore store(5);
  const std::vector<PeerLink> links(2, PeerLink{"127.0.0.1", 0});
  const Socket stranger(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  const SocketAddress source("127.0.0.9", 0);
  REQUIRE(::bind(stranger.fd(), source.get(), source.size()) == 0);
  const auto mesh = run_ranks(2, [&](int rank) {
    if (rank == 1) {
      const auto notice = read_network_notice(store.get("gloo/7/0"), 2);
      const SocketAddress port(notice.address, notice.ports.at(1));
      ::connect(stranger.fd(), port.get(), port.size());
    }
    return std::make_unique<GlooTransport>(loopback_mesh(2, rank), links, 5, store);
  });
  pollfd entry{stranger.fd(), POLLOUT, 0};
  CHECK(::poll(&entry, 1, 0) == 0);  // still knocking
}

TEST_CASE("a time of any length is one that Gloo can add to its clock") {
  using std::chrono::milliseconds;
  CHECK(to_milliseconds(0) == milliseconds(1));
  CHECK(to_milliseconds(1.5) == milliseconds(1500));
  for (const double seconds : {1e9, 1e10, 1e300}) {
    CHECK(to_milliseconds(seconds) == milliseconds(1'000'000'000'000));
  }
}
