#include "trainer/doctor/coordinator_answer.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/peers/secure_port.h"
#include "wan/membership/control_socket.h"
#include "wan/secure/key_folder.h"

namespace farstep {

namespace {

using Catch::Contains;

constexpr double kPatience = 5, kShortPatience = 0.3;

Finding answer(const SiteConfig& site, const CoordinatorPlace& place, double patience = kPatience) {
  const RealClock clock;
  return coordinator_answer(site, place, patience, clock);
}

std::string endpoint_of(const wan::Socket& listener) {
  return "tcp://" + wan::SocketAddress::local_of(listener.fd())->text();
}

}  // namespace

TEST_CASE("a coordinator that listens is heard, and whom the port belongs to else is not") {
  const wan::ControlSocket coordinator(wan::ControlSocket::Role::kCoordinator, "tcp://127.0.0.1:0",
                                       {});
  const auto good = answer({}, {.endpoint = coordinator.endpoint(), .site = ""});
  INFO(good.text);
  CHECK(good.grade == Grade::kOk);

  std::string free_endpoint;
  {
    const auto listener = wan::listen_tcp(wan::SocketAddress("127.0.0.1", 0));
    const auto silent = answer({}, {.endpoint = endpoint_of(listener), .site = ""}, kShortPatience);
    CHECK(silent.exit_code == 4);
    CHECK_THAT(silent.text, Contains("is no coordinator"));
    free_endpoint = endpoint_of(listener);
  }
  const auto away = answer({}, {.endpoint = free_endpoint, .site = ""});
  CHECK(away.grade == Grade::kWarning);
  CHECK_THAT(away.text, Contains(free_endpoint) && Contains("nobody listens there"));
}

TEST_CASE("an endpoint that can be none is a fault of the config, and an unknown name may come") {
  const auto wrong = answer({}, {.endpoint = "tcp://no such host:7400", .site = ""});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.text, Contains("coordinator.endpoint"));
  // RFC 6761: no name server knows it.
  const auto unknown = answer({}, {.endpoint = "tcp://nobody.invalid:7400", .site = ""});
  CHECK(unknown.exit_code == 4);
  CHECK_THAT(unknown.text, Contains("no address is known for nobody.invalid"));
}

TEST_CASE("with keys the coordinator's site has to let this one in") {
  const TemporaryFolder folder;
  wan::make_key_folder(folder / "keys", "mine");
  wan::add_site_keys(folder / "keys", {"a", "b"}, 1);
  wan::make_key_folder(folder / "others", "mine");
  wan::add_site_keys(folder / "others", {"b"}, 1);
  const RealClock clock;
  SecurePort host(wan::site_key_folder(folder / "keys", "a"), {wan::SocketAddress("127.0.0.1", 0)},
                  std::nullopt, clock);
  SiteConfig site;
  site.name = "b";
  const CoordinatorPlace place{.endpoint = fmt::format("tcp://127.0.0.1:{}", host.gateway().port()),
                               .site = "a"};
  site.network.keys = wan::site_key_folder(folder / "keys", "b").string();
  const auto good = answer(site, place);
  INFO(good.text);
  CHECK(good.grade == Grade::kOk);
  site.network.keys = wan::site_key_folder(folder / "others", "b").string();
  const auto stranger = answer(site, place, 1);
  CHECK(stranger.exit_code == 4);
  CHECK_THAT(stranger.text, Contains("no secure link to site a") && Contains("one authority"));
}

}  // namespace farstep
