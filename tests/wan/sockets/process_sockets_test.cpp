#include "wan/sockets/process_sockets.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

struct Pair {
  Socket listener, client, server;
};

Pair connected_pair(const std::string& ip) {
  Pair pair;
  pair.listener = listen_tcp(SocketAddress(ip, 0));
  const auto address = *SocketAddress::local_of(pair.listener.fd());
  pair.client = connect_tcp(address, deadline_after(1));
  pollfd entry{pair.listener.fd(), POLLIN, 0};
  REQUIRE(::poll(&entry, 1, 1000) == 1);
  pair.server = Socket(::accept(pair.listener.fd(), nullptr, nullptr));
  return pair;
}

}  // namespace

TEST_CASE("the sockets of this process are listed with their addresses") {
  const auto pair = connected_pair("127.0.0.1");
  const auto sockets = process_sockets();
  const auto found = [&](const Socket& wanted) {
    const auto socket = std::ranges::find(sockets, wanted.fd(), &ProcessSocket::fd);
    REQUIRE(socket != sockets.end());
    CHECK(socket->local == *SocketAddress::local_of(wanted.fd()));
    return socket->remote;
  };
  CHECK(found(pair.client) == SocketAddress::local_of(pair.server.fd()));
  CHECK(found(pair.server) == SocketAddress::local_of(pair.client.fd()));
  CHECK_FALSE(found(pair.listener));
}

TEST_CASE("a socket is sound until either end has closed it") {
  for (const bool is_own : {false, true}) {
    auto pair = connected_pair("127.0.0.1");
    const SocketCounter client(pair.client.fd());
    CHECK(client.is_sound());
    (is_own ? pair.client : pair.server) = Socket();
    pollfd entry{pair.client.fd(), POLLIN, 0};  // the end of the stream has come
    if (!is_own) REQUIRE(::poll(&entry, 1, 1000) == 1);
    CHECK_FALSE(client.is_sound());
  }
}

TEST_CASE("a line from now on counts what comes after") {
  auto pair = connected_pair("127.0.0.1");
  const auto all = std::make_shared<SocketCounter>(pair.client.fd());
  send_line(pair.client, std::string(99, 'x'), deadline_after(1));
  LineFromNow rest(all);
  CHECK(rest.facts().bytes.sent == 0);
  send_line(pair.client, std::string(49, 'x'), deadline_after(1));
  CHECK(rest.facts().bytes.sent == 50);
  CHECK(all->facts().bytes.sent == 150);
}

TEST_CASE("the kernel's count of a socket is the bytes that went through it") {
  auto pair = connected_pair("127.0.0.1");
  SocketCounter client(pair.client.fd()), server(pair.server.fd());
  CHECK(client.facts().bytes.sent == 0);
  send_line(pair.client, std::string(99, 'x'), deadline_after(1));
  CHECK(receive_line(pair.server, deadline_after(1)).size() == 99);
  CHECK(client.facts().bytes.sent == 100);
  CHECK(server.facts().bytes.received == 100);
  CHECK(server.facts().bytes.sent == 0);
  CHECK(kernel_rtt_seconds(pair.client.fd()) < 0.1);
}

TEST_CASE("a socket is paced as it was asked to if the kernel can") {
  auto pair = connected_pair("127.0.0.1");
  const int fd = pair.client.fd();
  const auto usual = pace_with(fd, "");
  CHECK_FALSE(usual.empty());
  CHECK(pace_with(fd, "no such way") == usual);
  CHECK(pace_with(fd, "reno") == "reno");
  SocketCounter(fd).limit_pace(8e6);
  uint64_t bytes_per_second = 0;
  socklen_t length = sizeof(bytes_per_second);
  REQUIRE(getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, &length) == 0);
  CHECK(bytes_per_second == 1'000'000);
}

TEST_CASE("a counter keeps its last count when the socket is closed and its number taken") {
  auto pair = connected_pair("127.0.0.1");
  const int fd = pair.client.fd();
  SocketCounter counter(fd);
  send_line(pair.client, std::string(99, 'x'), deadline_after(1));
  CHECK(counter.facts().bytes.sent == 100);
  pair.client = connect_tcp(*SocketAddress::local_of(pair.listener.fd()), deadline_after(1));
  CHECK(counter.facts().bytes.sent == 100);
}

TEST_CASE("keep-alive can be set on a connection") {
  const auto pair = connected_pair("127.0.0.1");
  keep_alive(pair.client.fd());
  int value = 0;
  socklen_t length = sizeof(value);
  REQUIRE(::getsockopt(pair.client.fd(), SOL_SOCKET, SO_KEEPALIVE, &value, &length) == 0);
  CHECK(value == 1);
}

TEST_CASE("a filtered port answers its one source and nobody else") {
  for (const std::string ip : {"127.0.0.1", "::1"}) {
    Socket listener;
    try {
      listener = listen_tcp(SocketAddress(ip, 0));
    } catch (const TcpError&) {
      continue;  // no IPv6 here
    }
    const auto address = *SocketAddress::local_of(listener.fd());
    if (!accept_only_from(listener.fd(), ip)) {
      skip_test("a packet filter needs root");
      return;
    }
    CHECK_NOTHROW(connect_tcp(address, deadline_after(1)));
    CHECK(accept_only_from(listener.fd(), ip == "::1" ? "fd00::1" : "127.0.0.9"));
    CHECK_THROWS_WITH(connect_tcp(address, deadline_after(0.05)), "timed out");
  }
}

TEST_CASE("a kernel that lets only administrators filter is no error for other users") {
  constexpr uid_t kNobody = 65534;
  const Socket listener = listen_tcp(SocketAddress("127.0.0.1", 0));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(3);
    try {
      const bool is_filtered = accept_only_from(listener.fd(), "127.0.0.9");
      ::_exit(is_filtered ? 1 : 0);
    } catch (const std::exception&) {
      ::_exit(2);
    }
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) <= 1);
  // What was not filtered is as open as before.
  const auto address = *SocketAddress::local_of(listener.fd());
  if (WEXITSTATUS(status) == 0) {
    CHECK_NOTHROW(connect_tcp(address, deadline_after(1)));
  } else {
    CHECK_THROWS_WITH(connect_tcp(address, deadline_after(0.05)), "timed out");
  }
}

TEST_CASE("to ask a broken connection for its other end is no error, and gives none") {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_storage storage;
  socklen_t size = sizeof(storage);
  REQUIRE(::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&storage), &size) == 0);
  CHECK(SocketAddress(storage).text() == "0.0.0.0:0");
  CHECK_FALSE(SocketAddress::remote_of(socket.fd()));
  const auto pair = connected_pair("127.0.0.1");
  CHECK(SocketAddress::remote_of(pair.client.fd()) == SocketAddress::local_of(pair.server.fd()));
  CHECK(::getpeername(-1, reinterpret_cast<sockaddr*>(&storage), &size) == -1);
}

TEST_CASE("a deadline of any length is later than a shorter one") {
  const auto first = deadline_after(1e8);
  CHECK(first > deadline_after(1));
  for (const double seconds : {1e10, 1e18, 1e300}) {
    CHECK(deadline_after(seconds) > first);
    CHECK(milliseconds_until(deadline_after(seconds)) > 0);
  }
  CHECK(milliseconds_until(deadline_after(-1)) == 0);
}
