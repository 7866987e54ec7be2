#include "wan/sockets/local_address.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::wan;

TEST_CASE("an address of this machine is taken as it is") {
  CHECK(resolve_address("127.0.0.1", "") == "127.0.0.1");
  CHECK(resolve_address("127.0.0.2", "") == "127.0.0.2");
}

TEST_CASE("a name is taken for its address") {
  CHECK(resolve_address("localhost", "") == ip_of_host("network.address", "localhost"));
  CHECK(ip_of_host("f", "fd00::5") == "fd00::5");
  CHECK_THROWS_WITH(ip_of_host("coordinator.endpoint", "no such host"),
                    Catch::StartsWith("coordinator.endpoint: \"no such host\" is neither"));
}

TEST_CASE("an address is this machine's or another's") {
  CHECK(is_own_address("127.0.0.1"));
  CHECK_FALSE(is_own_address("192.0.2.77"));
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
  CHECK_THROWS_AS(resolve_address("fe80::1%lo", ""), ConfigError);
}

TEST_CASE("an interface that is not here is refused with the list of those that are") {
  CHECK_THROWS_AS(resolve_address("", "nonesuch0"), ConfigError);
  CHECK_THROWS_WITH(resolve_address("", "nonesuch0"), Catch::StartsWith("network.interface: ") &&
                                                          Catch::Contains("nonesuch0") &&
                                                          Catch::Contains("127.0.0.1 (lo)"));
}
