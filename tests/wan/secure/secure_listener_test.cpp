#include "wan/secure/secure_listener.h"

#include <sys/socket.h>

#include <array>
#include <future>

#include "tests/support/catch.h"
#include "tests/wan/secure/sites.h"
#include "trainer/base/error.h"

namespace farstep::wan {
namespace {

using Catch::Contains;

// A listener of the site seoul that expects lyon, with what it refused.
struct Seoul {
  explicit Seoul(const Authority& authority, const std::vector<const X509*>& revoked = {},
                 ListenerLimits limits = {})
      : credentials(authority.credentials(authority.site("seoul"), revoked)),
        listener(
            kAnyPort, credentials, [](const std::string& site) { return site == "lyon"; },
            [this](std::string_view kind, const std::string& text) {
              refusals.push_back(std::string(kind) + ": " + text);
            },
            limits) {}

  SocketAddress address() const { return {"127.0.0.1", listener.port()}; }

  // Serves until `visitor` has ended. Returns whether somebody was let in.
  template <typename T>
  bool serve(std::future<T>& visitor) {
    bool let_in = false;
    const auto deadline = deadline_after(kLong);
    while (visitor.wait_for(std::chrono::seconds(0)) != std::future_status::ready &&
           std::chrono::steady_clock::now() < deadline) {
      let_in = listener.accept(deadline_after(0.02)).has_value() || let_in;
    }
    return let_in;
  }

  std::vector<std::string> refusals;
  Credentials credentials;
  SecureListener listener;
};

// Lets lyon in, so that what came before did no harm.
void check_lets_lyon_in(Seoul& seoul, const Credentials& lyon) {
  auto client = std::async(std::launch::async,
                           [&] { return connect_to(seoul.address(), "seoul", lyon).peer(); });
  auto channel = seoul.listener.accept(deadline_after(kLong));
  REQUIRE(channel);
  CHECK(channel->peer() == "lyon");
  CHECK(client.get() == "seoul");
}

std::string refusal_of(Seoul& seoul, const KeyPair* shown, int version = TLS1_3_VERSION) {
  auto stranger = std::async(std::launch::async, [&, port = seoul.listener.port()] {
    return visit(port, shown, version);
  });
  const bool let_in = seoul.serve(stranger);
  CHECK_FALSE(let_in);
  CHECK(stranger.get().empty());
  REQUIRE(seoul.refusals.size() == 1);
  auto text = seoul.refusals.front();
  seoul.refusals.clear();
  return text;
}

TEST_CASE("a listener refuses every certificate but an expected site's of its run") {
  const Authority authority, other;
  const auto revoked = authority.site("lyon");
  Seoul seoul(authority, {revoked.certificate.get()});
  const auto lyon = authority.credentials("lyon");

  CHECK_THAT(refusal_of(seoul, nullptr), Contains("peer did not return a certificate"));
  CHECK_THAT(refusal_of(seoul, &revoked), Contains("certificate revoked"));
  const auto expired = issue(authority.pair(), {"mine", "lyon"}, -9, -2);
  CHECK_THAT(refusal_of(seoul, &expired), Contains("certificate has expired"));
  const auto early = issue(authority.pair(), {"mine", "lyon"}, 2, 9);
  CHECK_THAT(refusal_of(seoul, &early), Contains("certificate is not yet valid"));
  const auto foreign = other.site("lyon");
  CHECK_THAT(refusal_of(seoul, &foreign),
             Contains("refused a certificate") && Contains("keys of one authority?"));
  const auto other_run = issue(authority.pair(), {"yours", "lyon"}, -1, 9);
  CHECK_THAT(refusal_of(seoul, &other_run), Contains("of the run \"yours\", not \"mine\""));
  const auto oslo = authority.site("oslo");
  CHECK_THAT(refusal_of(seoul, &oslo), Contains("site \"oslo\" is not expected"));
  // A site's key signs no other site's certificate.
  const auto issued_by_site = issue(oslo, {"mine", "lyon"}, -1, 9);
  CHECK_THAT(refusal_of(seoul, &issued_by_site), Contains("refused a certificate"));
  const auto right = authority.site("lyon");
  CHECK_THAT(refusal_of(seoul, &right, TLS1_2_VERSION), Contains("unsupported protocol"));

  check_lets_lyon_in(seoul, lyon);
}

std::string connect_error(const Seoul& seoul, const std::string& site, const Credentials& own) {
  try {
    connect_to(seoul.address(), site, own);
  } catch (const PeerError& error) {
    CHECK(error.site() == site);
    return error.what();
  }
  return "connected";
}

TEST_CASE("who connects refuses every listener but the site that it names") {
  const Authority authority, other;
  Seoul seoul(authority);
  const auto check = [&](const std::string& site, const Credentials& own, const char* reason) {
    auto client = std::async(std::launch::async, [&] { return connect_error(seoul, site, own); });
    CHECK_FALSE(seoul.serve(client));
    CHECK_THAT(client.get(), Contains(reason));
  };
  check("seoul", other.credentials("lyon"), "keys of one authority?");
  const auto listening = SSL_CTX_get0_certificate(seoul.credentials.context());
  check("seoul", authority.credentials(authority.site("lyon"), {listening}), "certificate revoked");
  const auto other_run = issue(authority.pair(), {"yours", "lyon"}, -1, 9);
  check("seoul", authority.credentials(other_run), "of the run \"mine\", not \"yours\"");
  // And it learns that it was refused itself, before it sends anything.
  check("seoul", authority.credentials("oslo"), "it may have refused this site's certificate");
}

TEST_CASE("who connects to another site's listener says which site it met") {
  const Authority authority;
  Seoul seoul(authority);
  const auto lyon = authority.credentials("lyon");
  auto client = std::async(std::launch::async, [&] { return connect_error(seoul, "busan", lyon); });
  seoul.serve(client);
  CHECK_THAT(client.get(), Contains("its certificate is of site \"seoul\""));
}

TEST_CASE("plain and oversized bytes are refused at once") {
  const Authority authority;
  Seoul seoul(authority);
  std::vector<std::string> texts{"GET / HTTP/1.1\r\n\r\n", std::string(1'000'000, 'x'),
                                 std::string(1'000'000, '\0')};
  texts.push_back(std::string("\x16\x03\x01\xff\xff", 5) + std::string(100'000, '\1'));
  for (const auto& text : texts) {
    const auto socket = connect_tcp(seoul.address(), deadline_after(kLong));
    ::send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL);
    const auto deadline = deadline_after(kLong);
    while (seoul.refusals.empty() && std::chrono::steady_clock::now() < deadline) {
      CHECK_FALSE(seoul.listener.accept(deadline_after(0.02)));
    }
    REQUIRE(seoul.refusals.size() == 1);
    CHECK_THAT(seoul.refusals.front(), Contains("refused at the TLS handshake"));
    CHECK(seoul.listener.visitors() == 0);
    seoul.refusals.clear();
  }
  check_lets_lyon_in(seoul, authority.credentials("lyon"));
}

TEST_CASE("a slow visitor is dropped in time, and keeps no site waiting") {
  const Authority authority;
  Seoul seoul(authority, {}, {.visitors = 8, .handshake_seconds = 0.3});
  const auto silent = connect_tcp(seoul.address(), deadline_after(kLong));
  const auto slow = connect_tcp(seoul.address(), deadline_after(kLong));
  // The beginning of a TLS record.
  CHECK(::send(slow.fd(), "\x16\x03\x01", 3, MSG_NOSIGNAL) == 3);
  const auto deadline = deadline_after(kLong);
  while (seoul.refusals.size() < 2 && std::chrono::steady_clock::now() < deadline) {
    CHECK_FALSE(seoul.listener.accept(deadline_after(0.02)));
  }
  REQUIRE(seoul.refusals.size() == 2);
  for (const auto& text : seoul.refusals) CHECK_THAT(text, Contains("no handshake in 0.3 s"));
  CHECK(seoul.listener.visitors() == 0);
}

TEST_CASE("of 500 connections held open, few are kept, and a site still gets in") {
  const Authority authority;
  constexpr std::size_t kMost = 16;
  Seoul seoul(authority, {}, {.visitors = kMost, .handshake_seconds = kLong});
  std::vector<Socket> held;
  for (int i = 0; i < 500; ++i) {
    held.push_back(connect_tcp(seoul.address(), deadline_after(kLong)));
    if (i % 10 == 9) CHECK_FALSE(seoul.listener.accept(deadline_after(0)));
    CHECK(seoul.listener.visitors() <= kMost);
  }
  check_lets_lyon_in(seoul, authority.credentials("lyon"));
  CHECK(seoul.refusals.size() >= 500 - 2 * kMost);
}

}  // namespace
}  // namespace farstep::wan
