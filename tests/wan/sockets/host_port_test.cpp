#include "wan/sockets/host_port.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "wan/sockets/tcp.h"

using namespace farstep;
using namespace farstep::wan;
using Catch::Contains;

namespace {

// What a text is read as; "!" and the message if it is refused.
std::string read(const std::string& text) {
  try {
    return parse_host_port("listen", text).text();
  } catch (const ConfigError& error) {
    return std::string("!") + error.what();
  }
}

std::string refusal(const std::string& text) {
  const auto said = read(text);
  CHECK_THAT(said, Catch::StartsWith("!listen: \""));
  return said;
}

}  // namespace

TEST_CASE("a host and a port are read as they are written, and written in their usual form") {
  const std::pair<std::string, std::string> rows[] = {
      {"10.0.0.5:7400", "10.0.0.5:7400"},
      {"0.0.0.0:0", "0.0.0.0:0"},
      {"*:7400", "*:7400"},
      {"[::]:7400", "[::]:7400"},
      {"[::1]:7400", "[::1]:7400"},
      {"[0:0:0:0:0:0:0:1]:65535", "[::1]:65535"},
      {"[2001:DB8::0007]:1", "[2001:db8::7]:1"},
      {"[fe80::1%eth0]:7400", "[fe80::1%eth0]:7400"},
      {"[::ffff:10.0.0.5]:7400", "10.0.0.5:7400"},
      {"localhost:7400", "localhost:7400"},
      {"Seoul.example.:7400", "Seoul.example.:7400"},
      {"a_b-c.4x:07400", "a_b-c.4x:7400"},
      {"xn--mnchen-3ya.example:7400", "xn--mnchen-3ya.example:7400"},
  };
  for (const auto& [text, usual] : rows) {
    CHECK(read(text) == usual);
    CHECK(read(usual) == usual);
    CHECK(parse_endpoint("e", "tcp://" + text).endpoint() == "tcp://" + usual);
  }
}

TEST_CASE("what is no host and port is refused, and the message says what to write") {
  const std::pair<std::string, std::string> rows[] = {
      {"", "has no host"},
      {":7400", "has no host"},
      {"localhost", "write localhost:7400"},
      {"10.0.0.5", "write 10.0.0.5:7400"},
      {"[::1]", "write [::1]:7400"},
      {"300.1.2.3:7400", "four numbers from 0 to 255"},
      {"10.0.0:7400", "four numbers from 0 to 255"},
      {"fd00::5", "write [fd00::5]:7400"},
      {"::1", "write [::1]:7400"},
      {"::1:7440", "write [::1]:7440 for the port 7440, or [::1:7440]"},
      {"2001:db8:1:2:3:4:5:6:7400", "write [2001:db8:1:2:3:4:5:6]:7400"},
      {"a:b:c", "several colons"},
      {"fe80::1%eth0:7400", "write [fe80::1%eth0]:7400"},
      {"[::1", "must be [ADDRESS]:PORT"},
      {"[::1]7400", "must be [ADDRESS]:PORT"},
      {"[10.0.0.5]:7400", "has no IPv6 address"},
      {"[localhost]:7400", "has no IPv6 address"},
      {"[]:7400", "has no IPv6 address"},
      {"[*]:7400", "has no IPv6 address"},
      {"[::1%lo]:7400", "has no IPv6 address"},  // only a link-local one has an interface
      {"[fe80::1%]:7400", "has no IPv6 address"},
      {"[fe80::1]:7400", "fe80::1%eth0"},
      {"host:", "has the port \"\""},
      {"host:70000", "from 0 to 65535"},
      {"host:65536", "from 0 to 65535"},
      {"host:-1", "from 0 to 65535"},
      {"host:+1", "from 0 to 65535"},
      {"host:1e3", "from 0 to 65535"},
      {"host: 1", "from 0 to 65535"},
      {"host:99999999999999999999", "from 0 to 65535"},
      {" host:1", "has no host"},
      {"ho st:1", "has no host"},
      {"host..example:1", "has no host"},
      {".host:1", "has no host"},
      {".:1", "has no host"},
      {"-host:1", "has no host"},
      {"user@host:1", "has no host"},
      {"host/path:1", "has no host"},
      {std::string("10.0.0.5\0x:1", 12), "has no host"},
      {std::string(64, 'a') + ":1", "has no host"},
      {"10.0.0.256:1", "four numbers"},
      {"10.1:1", "four numbers"},
      {"10.0.0.5.:1", "four numbers"},
      {"167772165:1", "four numbers"},
      {"m\xc3\xbcnchen.example:1", "xn--"},
      {"tcp://host:1", "several colons"},
  };
  for (const auto& [text, part] : rows) {
    INFO(text);
    CHECK_THAT(refusal(text), Contains(part));
  }
}

TEST_CASE("an IPv6 address alone needs no brackets, unless it could end in a port") {
  const auto host = [](const std::string& text) { return parse_host_maybe_port("f", text); };
  for (const std::string text : {"fd00::5", "::", "::1", "2001:db8::7", "1:2:3:4:5:6:7:8"}) {
    CHECK(host(text).host == text);
    CHECK_FALSE(host(text).port);
    CHECK(host("[" + text + "]").host == text);
    CHECK(host("[" + text + "]:7400").port == 7400);
  }
  CHECK(host("::ffff:10.0.0.5").host == "10.0.0.5");
  CHECK(host("host:7400").port == 7400);
  CHECK_THROWS_WITH(host("2001:db8::1:5"), Contains("[2001:db8::1]:5"));
  CHECK_THROWS_WITH(parse_host("network.address", "10.0.0.5:7400"),
                    Catch::StartsWith("network.address: ") && Contains("without a port"));
}

TEST_CASE("an endpoint has its scheme, in letters of any size") {
  CHECK(parse_endpoint("e", "TCP://Host:1") == HostPort{"Host", 1});
  CHECK(parse_endpoint("e", "tcp://*:*") == HostPort{"*", 0});
  for (const std::string text : {"", "host:1", "udp://host:1", "tcp:/host:1", "tcp//host:1"}) {
    CHECK_THROWS_WITH(parse_endpoint("e", text), Contains("must be tcp://HOST:PORT"));
  }
  CHECK_THROWS_WITH(parse_endpoint("e", "tcp://host:1/"), Contains("from 0 to 65535"));
  CHECK_THROWS_WITH(parse_endpoint("e", "tcp://"), Contains("has no host"));
}

TEST_CASE("two texts of one IP address have one usual form, and names have none") {
  CHECK(usual_ip("0:0::1") == usual_ip("::1"));
  CHECK(usual_ip("::ffff:a00:5") == "10.0.0.5");
  for (const std::string text : {"", "localhost", "*", "10.0.0", "010.0.0.5", "::1%lo", "[::1]"}) {
    CHECK_FALSE(usual_ip(text));
  }
}

TEST_CASE("a socket's address has the text that was given, with its interface") {
  for (const std::string ip : {"10.0.0.5", "::1", "fd00::5", "fe80::1%lo"}) {
    const SocketAddress address(ip, 7400);
    CHECK(address.ip() == ip);
    CHECK(address.port() == 7400);
    CHECK(read(address.text()) == address.text());
    CHECK(address.with_port(1) == SocketAddress(ip, 1));
  }
  CHECK(SocketAddress("::ffff:127.0.0.1", 1) == SocketAddress("127.0.0.1", 1));
  CHECK(SocketAddress("::ffff:127.0.0.1", 1).is_loopback());
  CHECK_THROWS_WITH(SocketAddress("fe80::1%nonesuch0", 1), Contains("no interface nonesuch0"));
  CHECK_THROWS_AS(SocketAddress("localhost", 1), ConfigError);
}
