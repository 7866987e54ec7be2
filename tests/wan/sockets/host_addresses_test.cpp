#include "wan/sockets/host_addresses.h"

#include <cerrno>
#include <deque>
#include <memory>

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::wan;
using Catch::Contains;

namespace {

constexpr double kPatience = 20;

const SocketAddress kFirst("10.0.0.1", 7400), kSecond("2001:db8::2", 7400),
    kThird("10.0.0.3", 7400);

using Addresses = std::vector<SocketAddress>;

// A name service: each look-up takes the next answer, the last one again and again. An empty answer
// is that of an unknown name.
HostAddresses named(std::deque<Addresses> answers) {
  auto left = std::make_shared<std::deque<Addresses>>(std::move(answers));
  return HostAddresses({"seoul.example", 7400}, [left](const HostPort& place) {
    const auto answer = left->front();
    if (left->size() > 1) left->pop_front();
    if (answer.empty()) throw UnknownHostError(place.text() + ": no address is known");
    return answer;
  });
}

// The addresses of a turn in which none works.
Addresses failed_turn(HostAddresses& addresses) {
  Addresses tried;
  // A look-up comes at most once a second.
  const auto deadline = deadline_after(kPatience);
  while (tried.empty() && milliseconds_until(deadline) > 0) {
    while (const auto address = addresses.next(/*patience_seconds=*/0.01)) {
      tried.push_back(*address);
      addresses.fail(*address, "timed out");
    }
  }
  return tried;
}

}  // namespace

TEST_CASE("an IP address is the only one, in every turn") {
  HostAddresses addresses({"10.0.0.1", 7400});
  CHECK(addresses.is_fixed());
  CHECK(addresses.failure().empty());
  for (int turn = 0; turn < 3; ++turn) CHECK(failed_turn(addresses) == Addresses{kFirst});
  CHECK(addresses.failure() == "10.0.0.1:7400 (timed out)");
  addresses.succeed(kFirst);
  CHECK(addresses.failure().empty());
}

TEST_CASE("all addresses of a name are tried in their order, and said with their reasons") {
  auto addresses = named({{kFirst, kSecond}});
  CHECK_FALSE(addresses.is_fixed());
  CHECK(failed_turn(addresses) == Addresses{kFirst, kSecond});
  CHECK(addresses.failure() ==
        "seoul.example, which is 10.0.0.1:7400 (timed out), [2001:db8::2]:7400 (timed out)");
}

TEST_CASE("the same address comes until it has failed, and another's failure changes nothing") {
  auto addresses = named({{kFirst, kSecond}});
  REQUIRE(addresses.next(kPatience) == kFirst);
  CHECK(addresses.next() == kFirst);
  addresses.fail(kSecond, "late");
  CHECK(addresses.next() == kFirst);
  addresses.fail(kFirst, "refused");
  CHECK(addresses.next() == kSecond);
}

TEST_CASE("the address that worked is tried first, also after the name was looked up anew") {
  auto addresses = named({{kFirst, kSecond}, {kThird, kSecond}});
  REQUIRE(addresses.next(kPatience) == kFirst);
  addresses.fail(kFirst, "refused");
  addresses.succeed(kSecond);
  CHECK(addresses.failure().empty());
  CHECK(failed_turn(addresses) == Addresses{kSecond, kFirst});
  CHECK(failed_turn(addresses) == Addresses{kSecond, kThird});
  // What the name is no more is not said either.
  CHECK_THAT(addresses.failure(), !Contains("10.0.0.1:") && Contains("10.0.0.3:"));
}

TEST_CASE("a name that nobody knows is looked up again until somebody does") {
  auto addresses = named({{}, {}, {kFirst}});
  CHECK_FALSE(addresses.next(kPatience));
  CHECK(addresses.failure() == "seoul.example:7400: no address is known");
  CHECK(failed_turn(addresses) == Addresses{kFirst});
}

TEST_CASE("a name service that is away takes no address away") {
  auto addresses = named({{kFirst, kSecond}, {}});
  CHECK(failed_turn(addresses) == Addresses{kFirst, kSecond});
  CHECK(failed_turn(addresses) == Addresses{kFirst, kSecond});
}

TEST_CASE("a look-up that does not end holds nobody up") {
  auto ends = std::make_shared<std::promise<void>>();
  const auto end = ends->get_future().share();
  {
    HostAddresses addresses({"seoul.example", 7400}, [end](const HostPort&) {
      end.wait();
      return Addresses{kFirst};
    });
    CHECK_FALSE(addresses.next());
    CHECK_FALSE(addresses.next());
  }
  ends->set_value();
}

TEST_CASE("the system's addresses of a host are those of the name, each once") {
  CHECK(look_up("f", {"fd00::5", 7400}) == Addresses{{"fd00::5", 7400}});
  const auto found = look_up("f", {"localhost", 7400});
  REQUIRE_FALSE(found.empty());
  for (const auto& address : found) {
    CHECK(address.is_loopback());
    CHECK(std::ranges::count(found, address) == 1);
  }
  CHECK_THROWS_WITH(look_up("coordinator.endpoint", {"nobody.invalid", 7400}),
                    Catch::StartsWith("coordinator.endpoint: no address is known for nobody.inv"));
}

TEST_CASE("a refused connection, silence, and a family that is not here have words of their own") {
  const auto told = [](const SocketAddress& address, int error) {
    return connecting_failure(address, TcpError("failed", error));
  };
  CHECK_THAT(told(kFirst, ECONNREFUSED), Contains("nobody listens at that port"));
  CHECK_THAT(told(kFirst, ETIMEDOUT), Contains("drops TCP port 7400"));
  CHECK_THAT(told(kSecond, ENETUNREACH), Contains("no way to IPv6"));
  CHECK_THAT(told(kSecond, EAFNOSUPPORT), Contains("no IPv6"));
  CHECK(told(kFirst, 0) == "failed");
}
