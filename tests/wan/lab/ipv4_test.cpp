#include "wan/lab/ipv4.h"

#include "tests/support/catch.h"
#include "tests/wan/lab/ipv4_packet.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::wan;

TEST_CASE("the destination of an IPv4 packet is read") {
  for (const std::size_t bytes : {20, 21, 1500, 65535}) {
    CHECK(ipv4_destination(ipv4_packet(0x0a4d0003, bytes)) == 0x0a4d0003U);
  }
  CHECK(ipv4_destination(ipv4_packet(0xffffffff, 40)) == 0xffffffffU);
  auto with_options = ipv4_packet(1, 60);
  with_options[0] = std::byte{0x4f};
  CHECK(ipv4_destination(with_options) == 1U);
}

TEST_CASE("what is no whole IPv4 packet has no destination") {
  const auto good = ipv4_packet(1, 40);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    CHECK_FALSE(ipv4_destination(std::span(good).first(bytes)));
  }
  auto longer = good;
  longer.push_back({});
  CHECK_FALSE(ipv4_destination(longer));
  // IPv6, no version, a header shorter than any, one longer than the packet.
  for (const int first : {0x60, 0x05, 0x44, 0x4f}) {
    auto bad = good;
    bad[0] = static_cast<std::byte>(first);
    CHECK_FALSE(ipv4_destination(bad));
  }
}

TEST_CASE("a subnet is the address of a network of 256") {
  CHECK(parse_subnet("10.77.0.0") == 0x0a4d0000);
  CHECK(ipv4_text(parse_subnet("192.168.200.0") + 254) == "192.168.200.254");
  for (const char* text : {"", "10.77.0", "10.77.0.1", "10.77.0.0/24", "fd00::", "256.0.0.0"}) {
    CHECK_THROWS_AS(parse_subnet(text), ConfigError);
  }
}
