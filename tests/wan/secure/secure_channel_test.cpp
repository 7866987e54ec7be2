#include "wan/secure/secure_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/secure/sites.h"
#include "trainer/base/error.h"
#include "wan/secure/handshake_fault.h"
#include "wan/secure/key_folder.h"
#include "wan/secure/secure_listener.h"

namespace farstep::wan {
namespace {

using Catch::Contains;
using Bytes = std::vector<std::byte>;

struct Pair {
  SecureChannel seoul, lyon;
};

Pair connect_pair(const Credentials& seoul, const Credentials& lyon) {
  SecureListener listener(
      kAnyPort, seoul, [](const std::string&) { return true; },
      [](std::string_view, const std::string&) {});
  auto client = std::async(std::launch::async, [&, port = listener.port()] {
    return connect_to({"127.0.0.1", port}, "seoul", lyon);
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

// Sends `sent` and receives as many bytes as `received` has. Throws PeerError after a minute in
// which nothing moves.
void exchange(SecureChannel& channel, std::span<const std::byte> sent,
              std::span<std::byte> received) {
  while (!sent.empty() || !received.empty()) {
    const auto left = sent.size() + received.size();
    sent = sent.subspan(channel.send_now(sent));
    if (!received.empty()) received = received.subspan(channel.receive_now(received).value());
    if (sent.size() + received.size() < left) continue;
    const auto events = (sent.empty() ? 0 : POLLOUT) | (received.empty() ? 0 : POLLIN);
    pollfd entry{channel.fd(), static_cast<short>(events), 0};
    if (::poll(&entry, 1, milliseconds_until(deadline_after(kLong))) <= 0) {
      throw PeerError(channel.peer(), "nothing moves");
    }
  }
}

TEST_CASE("bytes arrive as they were sent, of any number, in both directions at once") {
  auto pair = connected_pair();
  for (const std::size_t count : {0, 1, 16'384, 16'385, 5'000'000}) {
    const auto there = numbered(count, 1), back = numbered(count, 2);
    Bytes at_seoul(count), at_lyon(count);
    auto lyon = std::async(std::launch::async, [&] { exchange(pair.lyon, there, at_lyon); });
    exchange(pair.seoul, back, at_seoul);
    lyon.get();
    CHECK(at_seoul == there);
    CHECK(at_lyon == back);
  }
}

TEST_CASE("an end with notice is an end, and one without is an error") {
  std::byte byte{};
  {
    auto pair = connected_pair();
    pair.lyon.close(deadline_after(kLong));
    CHECK(receive_some(pair.seoul, {&byte, 1}) == 0);
  }
  auto pair = connected_pair();
  ::shutdown(pair.lyon.fd(), SHUT_RDWR);
  CHECK_THROWS_AS(receive_some(pair.seoul, {&byte, 1}), PeerError);
}

TEST_CASE("a send to a peer that is gone is an error, and no signal ends the process") {
  auto pair = connected_pair();
  ::shutdown(pair.seoul.fd(), SHUT_RDWR);
  CHECK_THROWS_AS(pair.seoul.send_now(Bytes(100'000)), PeerError);
}

TEST_CASE("a handshake without an answer ends at its deadline") {
  const Authority authority;
  const auto silent = listen_tcp(kAnyPort.front());
  auto socket = connect_tcp(*SocketAddress::local_of(silent.fd()), deadline_after(kLong));
  CHECK_THROWS_WITH(SecureChannel::connect(std::move(socket), "seoul", "",
                                           authority.credentials("lyon"), deadline_after(0.05)),
                    Contains("timed out"));
}

TEST_CASE("two clocks are compared, also where their seconds begin again") {
  CHECK(clock_remark(1000, 1000 + 90'000) ==
        "this clock is 25.0 h behind that of the other end: set the one that is wrong");
  CHECK_THAT(clock_remark(1800, 0xffffffff - 1799), Contains("1.0 h ahead of that"));
  CHECK_THAT(clock_remark(1000, 1060), Contains("agree"));
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
                    Contains("expired: this clock is 48.0 h after its end; if the clock is right"));
  // New keys would not mend a wrong clock.
  CHECK_THROWS_WITH(
      authority.credentials(issue(authority.pair(), {"mine", "seoul"}, 2, 9)),
      Contains("not yet valid: this clock is 48.0 h before its begin; set the clock") &&
          !Contains("new keys"));
}

}  // namespace
}  // namespace farstep::wan
