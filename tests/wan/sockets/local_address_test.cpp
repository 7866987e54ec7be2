#include "wan/sockets/local_address.h"

#include <sys/socket.h>

#include <cerrno>

#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "trainer/base/error.h"
#include "wan/sockets/host_addresses.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

bool has_ipv6() {
  return is_own_address({"::1", 0});
}

// Whether somebody listens there.
bool takes(const std::string& ip, int port) {
  try {
    connect_tcp({ip, port}, deadline_after(5));
    return true;
  } catch (const TcpError&) {
    return false;
  }
}

int port_of(const std::vector<Socket>& listeners) {
  return SocketAddress::local_of(listeners.front().fd())->port();
}

std::vector<Socket> listen_for(const std::string& host) {
  return listen_at_all("a test", listening_addresses("listen", {host, 0}), 4);
}

}  // namespace

TEST_CASE("an address of this machine is taken as it is") {
  CHECK(resolve_address("127.0.0.1", "") == "127.0.0.1");
  CHECK(resolve_address("127.0.0.2", "") == "127.0.0.2");
}

TEST_CASE("a name is taken for its address") {
  CHECK(SocketAddress(resolve_address("localhost", ""), 0).is_loopback());
  CHECK_THROWS_AS(resolve_address("nobody.invalid", ""), UnknownHostError);
}

TEST_CASE("an address is this machine's or another's") {
  CHECK(is_own_address({"127.0.0.1", 0}));
  CHECK_FALSE(is_own_address({"192.0.2.77", 0}));
}

TEST_CASE("an interface gives its address") {
  CHECK(resolve_address("", "lo") == "127.0.0.1");
}

TEST_CASE("an address that is not here is refused with the list of those that are") {
  CHECK_THROWS_AS(resolve_address("192.0.2.77", ""), PeerError);  // it may come later
  CHECK_THROWS_WITH(resolve_address("192.0.2.77", ""), Catch::StartsWith("network.address: ") &&
                                                           Catch::Contains("192.0.2.77") &&
                                                           Catch::Contains("127.0.0.1 (lo)"));
  CHECK_THROWS_WITH(resolve_address("0.0.0.0", ""), Catch::Contains("127.0.0.1 (lo)"));
  CHECK_THROWS_AS(resolve_address("no such host", ""), ConfigError);
  CHECK_THROWS_WITH(resolve_address("fe80::1%lo", ""), Catch::Contains("is link-local"));
  CHECK_THROWS_WITH(resolve_address("::", ""), Catch::Contains("127.0.0.1 (lo)"));
}

TEST_CASE("an interface that is not here is refused with the list of those that are") {
  CHECK_THROWS_AS(resolve_address("", "nonesuch0"), ConfigError);
  CHECK_THROWS_WITH(resolve_address("", "nonesuch0"), Catch::StartsWith("network.interface: ") &&
                                                          Catch::Contains("nonesuch0") &&
                                                          Catch::Contains("127.0.0.1 (lo)"));
}

TEST_CASE("a port for all addresses takes connections of both families") {
  for (const std::string host : {"*", "::"}) {
    const auto listeners = listen_for(host);
    CHECK(takes("127.0.0.1", port_of(listeners)));
    CHECK(takes("127.0.0.2", port_of(listeners)));
    CHECK(takes("::1", port_of(listeners)) == has_ipv6());
  }
  const auto only_ip4 = listen_for("0.0.0.0");
  CHECK(takes("127.0.0.1", port_of(only_ip4)));
  CHECK_FALSE(takes("::1", port_of(only_ip4)));
}

TEST_CASE("a visitor by IPv4 at a port of both families has an IPv4 address") {
  if (!has_ipv6()) return skip_test("no IPv6 loopback");
  const auto listener = listen_tcp({"::", 0});
  const auto visitor =
      connect_tcp({"127.0.0.1", SocketAddress::local_of(listener.fd())->port()}, deadline_after(5));
  const Socket taken(::accept(listener.fd(), nullptr, nullptr));
  CHECK(SocketAddress::remote_of(taken.fd()) == SocketAddress::local_of(visitor.fd()));
  CHECK(SocketAddress::remote_of(taken.fd())->ip() == "127.0.0.1");
}

TEST_CASE("an address and a name are listened at as they are, and all at one port") {
  const auto at_one = listen_for("127.0.0.2");
  CHECK(takes("127.0.0.2", port_of(at_one)));
  CHECK_FALSE(takes("127.0.0.3", port_of(at_one)));
  const auto by_name = listen_for("localhost");
  for (const auto& socket : by_name) {
    const auto address = *SocketAddress::local_of(socket.fd());
    CHECK(address.is_loopback());
    CHECK(address.port() == port_of(by_name));
    CHECK(takes(address.ip(), address.port()));
  }
  const auto several = listen_at_all("a test", {{"127.0.0.2", 0}, {"127.0.0.4", 0}}, 4);
  CHECK(takes("127.0.0.2", port_of(several)));
  CHECK(takes("127.0.0.4", port_of(several)));
  CHECK_FALSE(takes("127.0.0.3", port_of(several)));
}

TEST_CASE("each reason why a port cannot be opened has its remedy") {
  const auto taken = listen_tcp({"127.0.0.1", 0});
  const auto address = *SocketAddress::local_of(taken.fd());
  const auto told = [](const SocketAddress& at) {
    try {
      listen_at_all("network.port", {at}, 1);
    } catch (const PeerError& error) {
      return "later: " + std::string(error.what());
    } catch (const ConfigError& error) {
      return "never: " + std::string(error.what());
    }
    return std::string("it can");
  };
  CHECK_THAT(told(address), Catch::StartsWith("later: network.port: cannot listen on " +
                                              address.text() + " (Address already in use)") &&
                                Catch::Contains("choose another port"));
  CHECK_THAT(told({"192.0.2.77", 0}), Catch::StartsWith("later: ") &&
                                          Catch::Contains("this machine has 127.0.0.1 (lo)") &&
                                          Catch::Contains("network.listen"));
  CHECK_THAT(listening_failure({"127.0.0.1", 80}, EACCES),
             Catch::Contains("are for root: choose another port"));
  CHECK_THAT(listening_failure({"::1", 80}, EAFNOSUPPORT),
             Catch::Contains("this machine has no IPv6"));
  CHECK_FALSE(is_temporary_for_listening(EACCES));
}

TEST_CASE("a name that leads to this machine alone is warned of, localhost and addresses are not") {
  const std::vector<SocketAddress> own{{"127.0.1.1", 0}}, both{{"127.0.1.1", 0}, {"10.0.0.5", 0}};
  CHECK_THAT(loopback_warning("seoul", own),
             Catch::StartsWith("seoul is 127.0.1.1 here") && Catch::Contains("127.0.0.1 (lo)"));
  CHECK(loopback_warning("seoul", both).empty());
  for (const std::string host : {"localhost", "a.localhost", "127.0.1.1"}) {
    CHECK(loopback_warning(host, own).empty());
  }
}

TEST_CASE("an address behind a router may be another machine's, but not any") {
  CHECK(forwarded_address("192.0.2.77") == "192.0.2.77");
  CHECK(forwarded_address("[2001:db8::7]") == "2001:db8::7");
  CHECK_THROWS_AS(forwarded_address("0.0.0.0"), ConfigError);
  CHECK_THROWS_AS(forwarded_address("fe80::7%lo"), ConfigError);
  CHECK_THROWS_WITH(forwarded_address("192.0.2.77:7400"),
                    Catch::Contains("must be a host without a port"));
}

TEST_CASE("a machine reaches what listens at all its addresses by the loopback") {
  CHECK(endpoint_here("tcp://[::]:7400") == "tcp://127.0.0.1:7400");
  CHECK(endpoint_here("tcp://0.0.0.0:7400") == "tcp://127.0.0.1:7400");
  CHECK(endpoint_here("tcp://[fd00::1]:7400") == "tcp://[fd00::1]:7400");
}
