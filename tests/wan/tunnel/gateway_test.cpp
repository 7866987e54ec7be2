#include "wan/tunnel/gateway.h"

#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/wan/secure/sites.h"
#include "tests/wan/transport/cuttable_link.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "wan/secure/key_folder.h"

namespace farstep::wan {
namespace {

using Bytes = std::vector<std::byte>;

constexpr double kLong = 60;

Bytes numbered(std::size_t size, uint32_t seed) {
  Bytes bytes(size);
  uint32_t state = seed;
  for (auto& byte : bytes) {
    state = state * 1'664'525 + 1'013'904'223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

void wait_for(const Socket& socket, short events) {
  pollfd entry{socket.fd(), events, 0};
  if (::poll(&entry, 1, static_cast<int>(1e3 * kLong)) <= 0) throw TcpError("timed out");
}

void send_all(const Socket& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      wait_for(socket, POLLOUT);
    } else {
      throw TcpError("cannot send", errno);
    }
  }
}

// Returns at most `size` bytes, fewer if the connection ends.
Bytes receive(const Socket& socket, std::size_t size) {
  Bytes bytes(size);
  std::size_t come = 0;
  while (come < size) {
    wait_for(socket, POLLIN);
    const auto count = ::recv(socket.fd(), bytes.data() + come, size - come, 0);
    if (count <= 0) break;
    come += static_cast<std::size_t>(count);
  }
  bytes.resize(come);
  return bytes;
}

Socket accept_from(const Socket& listener) {
  wait_for(listener, POLLIN);
  return Socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

SocketAddress address_of(const Socket& listener) {
  return *SocketAddress::local_of(listener.fd());
}

// Two sites. Seoul's port can be reached over a link that breaks; lyon knows only that link.
struct TwoSites {
  Authority authority;
  RealClock clock;
  std::optional<Gateway> seoul{std::in_place, kAnyPort, authority.credentials("seoul"), clock};
  std::optional<Gateway> lyon{std::in_place, kAnyPort, authority.credentials("lyon"), clock};
  CuttableLink link{seoul->port()};
  Socket listener = listen_tcp({"127.0.0.1", 0});
  std::shared_ptr<const void> offer;

  TwoSites() {
    lyon->know("seoul", link.address().place(), true);
    offer = seoul->offer("lyon", "echo", address_of(listener), "127.77.0.1");
  }

  // A connection of lyon to seoul's service, with seoul's end.
  std::pair<Socket, Socket> connect(int lane = 0) {
    const auto way = lyon->way_to("seoul", lane, "echo", "127.77.0.2");
    auto near = connect_tcp(way.address, deadline_after(kLong));
    auto far = accept_from(listener);
    return {std::move(near), std::move(far)};
  }
};

TEST_CASE("bytes pass between two sites both ways, and a half-closed connection goes on") {
  TwoSites sites;
  const auto [near, far] = sites.connect();
  CHECK(SocketAddress::remote_of(far.fd())->ip() == "127.77.0.1");
  const auto there = numbered(5'000'000, 1), back = numbered(3'000'000, 2);
  auto sending = std::async(std::launch::async, [&, &near = near] {
    send_all(near, there);
    ::shutdown(near.fd(), SHUT_WR);
  });
  CHECK(receive(far, there.size() + 1) == there);
  sending.get();
  auto answering = std::async(std::launch::async, [&, &far = far] { send_all(far, back); });
  CHECK(receive(near, back.size()) == back);
  answering.get();
}

TEST_CASE("one way carries several connections, and one that nobody reads holds up no other") {
  TwoSites sites;
  const auto way = sites.lyon->way_to("seoul", 0, "echo", "127.77.0.2");
  const auto idle = connect_tcp(way.address, deadline_after(kLong));
  const auto idle_far = accept_from(sites.listener);
  const auto much = numbered(40'000'000, 3);
  auto stuck = std::async(std::launch::async, [&] { send_all(idle, much); });
  const auto near = connect_tcp(way.address, deadline_after(kLong));
  const auto far = accept_from(sites.listener);
  const auto bytes = numbered(1'000'000, 4);
  send_all(near, bytes);
  CHECK(receive(far, bytes.size()) == bytes);
  CHECK(receive(idle_far, much.size()) == much);
  stuck.get();
}

TEST_CASE("connections go on after cuts, without a byte lost or doubled") {
  TwoSites sites;
  const auto line = sites.lyon->line("seoul", 0);
  const auto [near, far] = sites.connect();
  const auto there = numbered(30'000'000, 5), back = numbered(30'000'000, 6);
  auto sending = std::async(std::launch::async, [&, &near = near] { send_all(near, there); });
  auto answering = std::async(std::launch::async, [&, &far = far] { send_all(far, back); });
  auto arriving =
      std::async(std::launch::async, [&, &near = near] { return receive(near, back.size()); });
  Bytes come;
  for (int i = 0; i < 6; ++i) {
    const auto part = receive(far, there.size() / 6);
    come.insert(come.end(), part.begin(), part.end());
    sites.link.cut();
  }
  CHECK(come == there);
  CHECK(arriving.get() == back);
  sending.get();
  answering.get();
  CHECK(line->facts().bytes.sent >= there.size());
}

TEST_CASE("a line that is dead for longer than the silence that breaks it costs its time only") {
  TwoSites sites;
  const auto [near, far] = sites.connect();
  send_all(near, numbered(1'000, 7));
  CHECK(receive(far, 1'000).size() == 1'000);
  sites.link.hold(true);
  const auto bytes = numbered(4'000'000, 8);
  auto sending = std::async(std::launch::async, [&, &near = near] { send_all(near, bytes); });
  std::this_thread::sleep_for(std::chrono::seconds(7));    // the length of the outage itself
  CHECK_FALSE(sites.seoul->is_closed_by_peer("lyon", 0));  // a dead line tells nothing of the peer
  sites.link.hold(false);
  CHECK(receive(far, bytes.size()) == bytes);
  sending.get();
}

TEST_CASE("a line that the peer's machine closes is told from one that is made anew") {
  TwoSites sites;
  const auto [near, far] = sites.connect();
  const auto is_closed = [&] { return sites.seoul->is_closed_by_peer("lyon", 0); };
  CHECK_FALSE(is_closed());
  CHECK_FALSE(sites.seoul->is_closed_by_peer("lyon", 1));
  // Seoul has no address of lyon, and so waits for it, as for a site behind NAT.
  sites.link.hold(true);
  sites.link.cut();
  const auto deadline = deadline_after(kLong);
  while (!is_closed() && std::chrono::steady_clock::now() < deadline) {
    sites.seoul->connect("lyon", 0, deadline_after(0.01));
  }
  CHECK(is_closed());
  sites.link.hold(false);
  send_all(near, numbered(10, 1));
  CHECK(receive(far, 10) == numbered(10, 1));
  CHECK_FALSE(is_closed());
}

TEST_CASE("a site that ends closes its connections, and what it sent before still comes") {
  TwoSites sites;
  auto [near, far] = sites.connect();
  const auto bytes = numbered(2'000'000, 9);
  send_all(near, bytes);
  near = Socket();
  sites.lyon.reset();
  CHECK(receive(far, bytes.size() + 1) == bytes);
}

TEST_CASE("connections to a site that has gone end, and new ones reach the next process") {
  TwoSites sites;
  const auto way = sites.lyon->way_to("seoul", 0, "echo", "127.77.0.2");
  const auto near = connect_tcp(way.address, deadline_after(kLong));
  const auto far = accept_from(sites.listener);
  const int port = sites.seoul->port();
  sites.seoul.reset();
  CHECK(receive(near, 1).empty());
  sites.seoul.emplace(std::vector{SocketAddress("127.0.0.1", port)},
                      sites.authority.credentials("seoul"), sites.clock);
  sites.offer = sites.seoul->offer("lyon", "echo", address_of(sites.listener), "127.77.0.1");
  // The connection waits in the way's queue until the sites are connected again.
  const auto next = connect_tcp(way.address, deadline_after(kLong));
  const auto next_far = accept_from(sites.listener);
  send_all(next, numbered(10, 1));
  CHECK(receive(next_far, 10) == numbered(10, 1));
}

TEST_CASE("a peer reaches what it is offered, and nothing else") {
  TwoSites sites;
  for (const auto* service : {"other", "echo"}) {
    if (std::string(service) == "echo") sites.offer.reset();
    const auto way = sites.lyon->way_to("seoul", 0, service, "127.77.0.2");
    const auto near = connect_tcp(way.address, deadline_after(kLong));
    CHECK(receive(near, 1).empty());
  }
  const auto of_busan =
      sites.seoul->offer("busan", "echo", address_of(sites.listener), "127.77.0.1");
  const auto way = sites.lyon->way_to("seoul", 0, "echo", "127.77.0.2");
  const auto near = connect_tcp(way.address, deadline_after(kLong));
  CHECK(receive(near, 1).empty());
}

TEST_CASE("a service for all tells its visitors apart") {
  TwoSites sites;
  Gateway busan(kAnyPort, sites.authority.credentials("busan"), sites.clock);
  busan.know("seoul", {"127.0.0.1", sites.seoul->port()}, true);
  const auto offer = sites.seoul->offer_to_all("control", address_of(sites.listener));
  for (auto* site : {&*sites.lyon, &busan, &*sites.lyon}) {
    const auto way = site->way_to("seoul", 0, "control", "127.77.0.2");
    const auto near = connect_tcp(way.address, deadline_after(kLong));
    const auto far = accept_from(sites.listener);
    CHECK(sites.seoul->visitor(SocketAddress::remote_of(far.fd())->ip()) == site->site());
  }
  CHECK(sites.seoul->visitor("127.0.0.1") == std::nullopt);
}

TEST_CASE("two sites that both dial end up with one connection a lane, whoever came first") {
  TwoSites sites;
  sites.seoul->know("lyon", {"127.0.0.1", sites.lyon->port()}, true);
  for (int lane = 0; lane < 8; ++lane) {
    const auto [near, far] = sites.connect(lane);
    const auto bytes = numbered(100'000, static_cast<uint32_t>(lane));
    send_all(near, bytes);
    send_all(far, bytes);
    CHECK(receive(far, bytes.size()) == bytes);
    CHECK(receive(near, bytes.size()) == bytes);
  }
}

TEST_CASE("a site whose key is revoked is put out, and comes in no more") {
  const TemporaryFolder folder;
  const auto keys = folder / "keys";
  make_key_folder(keys, "mine");
  add_site_keys(keys, {"seoul", "lyon"}, 30);
  const auto revoked_for_seoul = site_key_folder(keys, "seoul") / kRevocationsFile;
  const auto old_for_lyon = read_file(site_key_folder(keys, "lyon") / kRevocationsFile);
  RealClock clock;
  Gateway seoul(kAnyPort, Credentials::from_folder(site_key_folder(keys, "seoul")), clock);
  Gateway lyon(kAnyPort, Credentials::from_folder(site_key_folder(keys, "lyon")), clock);
  const auto listener = listen_tcp({"127.0.0.1", 0});
  const auto offer = seoul.offer("lyon", "echo", address_of(listener), "127.77.0.1");
  lyon.know("seoul", {"127.0.0.1", seoul.port()}, true);
  const auto way = lyon.way_to("seoul", 0, "echo", "127.77.0.2");
  const auto near = connect_tcp(way.address, deadline_after(kLong));
  const auto far = accept_from(listener);
  // A list that is damaged changes nothing.
  write_file(revoked_for_seoul, "no list");
  CHECK(lyon.connect("seoul", 1, deadline_after(kLong)).empty());
  revoke_site_keys(keys, {"lyon"});
  CHECK(receive(far, 1).empty());  // the end of the connection
  CHECK_FALSE(lyon.connect("seoul", 2, deadline_after(3)).empty());
  // What was revoked stays so, whatever the file says.
  write_file(revoked_for_seoul, old_for_lyon);
  CHECK_FALSE(lyon.connect("seoul", 3, deadline_after(3)).empty());
}

// What had failed stayed in the list without a tunnel, and the next look at the list ended the
// process.
TEST_CASE("a tunnel that cannot be made leaves the others as they are") {
  TwoSites sites;
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(sites.lyon->connect("lyon", 0, deadline_after(0)), InternalError);
    sites.lyon->know("lyon", sites.link.address().place(), true);
  }
  CHECK(sites.lyon->connect("seoul", 0, deadline_after(kLong)).empty());
}

TEST_CASE("who cannot be connected is named with the reason") {
  TwoSites sites;
  const Authority other("other");
  Gateway stranger(kAnyPort, other.credentials("busan"), sites.clock);
  sites.lyon->know("busan", {"127.0.0.1", stranger.port()}, true);
  CHECK_THAT(sites.lyon->connect("busan", 0, deadline_after(3)), Catch::Contains("refused"));
  const int free_port = [] {
    const auto listener = listen_tcp({"127.0.0.1", 0});
    return address_of(listener).port();
  }();
  sites.lyon->know("milan", {"127.0.0.1", free_port}, true);
  CHECK_THAT(sites.lyon->connect("milan", 0, deadline_after(1)),
             Catch::Contains("Connection refused"));
  CHECK(sites.lyon->connect("seoul", 0, deadline_after(kLong)).empty());
  CHECK(sites.seoul->connect("oslo", 0, deadline_after(0.1)) == "it has not connected");
}

}  // namespace
}  // namespace farstep::wan
