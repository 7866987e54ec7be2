#include "wan/secure/secure_channel.h"

#include <future>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/secure/sites.h"
#include "trainer/base/error.h"
#include "wan/secure/key_folder.h"
#include "wan/secure/secure_listener.h"

namespace farstep {
namespace {

using Catch::Contains;
using Bytes = std::vector<std::byte>;

constexpr double kLong = 60;

struct Pair {
  SecureChannel seoul, lyon;
};

Pair connect_pair(const Credentials& seoul, const Credentials& lyon) {
  SecureListener listener(
      kAnyPort, seoul, [](const std::string&) { return true; },
      [](std::string_view, const std::string&) {});
  auto client = std::async(std::launch::async, [&, port = listener.port()] {
    return SecureChannel::connect({"127.0.0.1", port}, "seoul", lyon, deadline_after(kLong));
  });
  auto accepted = listener.accept(deadline_after(kLong));
  REQUIRE(accepted);
  return {std::move(*accepted), client.get()};
}

Pair connected_pair() {
  const Authority authority;
  return connect_pair(authority.credentials("seoul"), authority.credentials("lyon"));
}

Bytes numbered(std::size_t count, unsigned first) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>((i * 2654435761U + first) >> 7);
  }
  return bytes;
}

TEST_CASE("bytes arrive as they were sent, of any number, in both directions at once") {
  auto pair = connected_pair();
  for (const std::size_t count : {0, 1, 16'384, 16'385, 5'000'000}) {
    const auto there = numbered(count, 1), back = numbered(count, 2);
    const auto exchange = [&](SecureChannel& channel, const Bytes& sent) {
      auto sender =
          std::async(std::launch::async, [&] { channel.send(sent, deadline_after(kLong)); });
      Bytes received(count);
      channel.receive(received, deadline_after(kLong));
      sender.get();
      return received;
    };
    auto lyon = std::async(std::launch::async, [&] { return exchange(pair.lyon, there); });
    CHECK(exchange(pair.seoul, back) == there);
    CHECK(lyon.get() == back);
  }
}

TEST_CASE("an end with notice is an end, and one without is an error") {
  std::byte byte{};
  {
    auto pair = connected_pair();
    pair.lyon.close(deadline_after(kLong));
    CHECK(pair.seoul.receive_some({&byte, 1}, deadline_after(kLong)) == 0);
    CHECK_THROWS_WITH(pair.seoul.receive({&byte, 1}, deadline_after(kLong)),
                      Contains("site lyon") && Contains("closed the channel"));
  }
  auto pair = connected_pair();
  pair.lyon.abort();
  CHECK_THROWS_AS(pair.seoul.receive_some({&byte, 1}, deadline_after(kLong)), PeerError);
}

TEST_CASE("a send to a peer that is gone is an error, and no signal ends the process") {
  auto pair = connected_pair();
  pair.seoul.abort();
  const Bytes bytes(100'000);
  const auto send_on = [&] {
    for (int i = 0; i < 100; ++i) pair.seoul.send(bytes, deadline_after(kLong));
  };
  CHECK_THROWS_AS(send_on(), PeerError);
}

TEST_CASE("a call ends at its deadline, and at an abort") {
  auto pair = connected_pair();
  std::byte byte{};
  CHECK_THROWS_WITH(pair.seoul.receive({&byte, 1}, deadline_after(0.05)), Contains("timed out"));
  const Bytes too_many(50'000'000);
  CHECK_THROWS_WITH(pair.seoul.send(too_many, deadline_after(0.05)), Contains("timed out"));
  auto waiting = std::async(std::launch::async, [&] {
    std::byte other{};
    // Reads what the send above left, and then waits.
    while (pair.lyon.receive_some({&other, 1}, deadline_after(kLong)) == 1) {
    }
  });
  pair.lyon.abort();
  CHECK_THROWS_AS(waiting.get(), PeerError);
}

TEST_CASE("an event loop sends and receives without waiting, under new keys on the way") {
  auto pair = connected_pair();
  const auto bytes = numbered(20'000'000, 3);
  Bytes received(bytes.size());
  CHECK(pair.lyon.receive_now(received) == 0);
  std::size_t sent = 0, came = 0;
  bool was_full = false;
  const auto deadline = deadline_after(kLong);
  while (came < bytes.size() && std::chrono::steady_clock::now() < deadline) {
    // Until the socket is full, and then after each piece that the other end has read.
    const auto piece =
        std::span(bytes).subspan(sent).first(std::min<std::size_t>(bytes.size() - sent, 1'000'000));
    const auto count = pair.seoul.send_now(piece);
    sent += count;
    was_full = was_full || count < piece.size();
    pair.seoul.renew_key();
    if (was_full) came += pair.lyon.receive_now(std::span(received).subspan(came)).value();
  }
  CHECK(received == bytes);
  CHECK(was_full);
  pair.seoul.close(deadline);
  REQUIRE(wait_for_ssl(pair.lyon.fd(), SSL_ERROR_WANT_READ, deadline));
  CHECK(pair.lyon.receive_now(received) == std::nullopt);
}

TEST_CASE("the files of farstep keys connect two sites") {
  const TemporaryFolder folder;
  make_key_folder(folder / "keys", "mine");
  add_site_keys(folder / "keys", {"seoul", "lyon"}, 30);
  const auto of = [&](const char* site) {
    return Credentials::from_folder(site_key_folder(folder / "keys", site));
  };
  CHECK(connect_pair(of("seoul"), of("lyon")).seoul.peer() == "lyon");
}

TEST_CASE("credentials that the peers would refuse are refused at the start") {
  const TemporaryFolder folder;
  make_key_folder(folder / "keys", "mine");
  add_site_keys(folder / "keys", {"seoul", "lyon"}, 30);
  const auto seoul = site_key_folder(folder / "keys", "seoul");
  namespace fs = std::filesystem;
  fs::permissions(seoul / kSiteKeyFile, fs::perms::group_read, fs::perm_options::add);
  CHECK_THROWS_WITH(Credentials::from_folder(seoul), Contains("chmod 600"));
  fs::permissions(seoul / kSiteKeyFile, fs::perms::group_read, fs::perm_options::remove);
  fs::copy_file(site_key_folder(folder / "keys", "lyon") / kSiteCertificateFile,
                seoul / kSiteCertificateFile, fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(Credentials::from_folder(seoul), Contains("is not the key of"));
  fs::remove(seoul / kRevocationsFile);
  CHECK_THROWS_WITH(Credentials::from_folder(seoul), Contains(kRevocationsFile));
  revoke_site_keys(folder / "keys", {"lyon"});
  CHECK_THROWS_WITH(Credentials::from_folder(site_key_folder(folder / "keys", "lyon")),
                    Contains("revoked"));
  const Authority authority;
  CHECK_THROWS_WITH(authority.credentials(issue(authority.pair(), {"mine", "seoul"}, -9, -2)),
                    Contains("expired"));
}

}  // namespace
}  // namespace farstep
