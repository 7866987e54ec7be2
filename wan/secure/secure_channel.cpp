// A TLS connection for a thread that polls many of them: every call takes what is there and
// returns. Only the handshake, the welcome and the last notice wait, each until its deadline.
#include "wan/secure/secure_channel.h"

#include <openssl/err.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "trainer/base/error.h"
#include "wan/secure/handshake_fault.h"

namespace farstep::wan {

namespace {

// Why an SSL call failed. `result` is SSL_get_error()'s; `error` is errno after the call.
std::string failure_text(const SSL* ssl, int result, int error) {
  if (result == SSL_ERROR_SYSCALL && error != 0) return std::system_category().message(error);
  if (result == SSL_ERROR_SYSCALL) return "the connection ended";
  return handshake_fault(ssl);
}

[[noreturn]] void fail(const std::string& site, const std::string& what) {
  throw PeerError(site, fmt::format("site {}: {}", site, what));
}

constexpr const char* kCannotSend = "cannot send";
constexpr const char* kCannotReceive = "cannot receive";
// 64 GiB, well below what RFC 8446 (section 5.5) allows a key of AES-GCM.
constexpr uint64_t kBytesOfAKey = uint64_t{1} << 36;

auto receiving(std::span<std::byte> bytes) {
  return [bytes](SSL* ssl, std::size_t& received) {
    return SSL_read_ex(ssl, bytes.data(), bytes.size(), &received);
  };
}

}  // namespace

bool wait_for_ssl(int fd, int wanted, Deadline deadline) {
  pollfd entry{fd, static_cast<short>(wanted == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN), 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

SecureChannel::SecureChannel(Socket socket, SslHandle ssl, std::string peer)
    : socket_(std::move(socket)), ssl_(std::move(ssl)), peer_(std::move(peer)) {}

SecureChannel SecureChannel::connect(Socket socket, const std::string& site,
                                     const std::string& topic, const Credentials& credentials,
                                     Deadline deadline) {
  SslHandle ssl(SSL_new(credentials.context()));
  check_openssl(ssl && SSL_set_fd(ssl.get(), socket.fd()) == 1, "make a connection");
  if (!topic.empty()) {
    check_openssl(SSL_set_tlsext_host_name(ssl.get(), topic.c_str()) == 1, "name a topic");
  }
  SSL_set_connect_state(ssl.get());
  SecureChannel channel(std::move(socket), std::move(ssl), site);
  channel.repeat(
      "refused at the handshake",
      [](SSL* connection, std::size_t& count) {
        count = 1;
        return SSL_do_handshake(connection);
      },
      deadline);
  auto reason = credentials.reason_to_refuse(channel.ssl_.get());
  // The right run is not enough: another of its sites may listen at this address.
  const auto found = identity_of(SSL_get0_peer_certificate(channel.ssl_.get())).site;
  if (!reason && found != site) reason = fmt::format("its certificate is of site \"{}\"", found);
  if (reason) fail(site, fmt::format("who answers there is refused: {}", *reason));
  std::array<char, kWelcome.size()> welcome{};
  try {
    // In TLS 1.3 a client's handshake ends before the server has checked its certificate. The
    // welcome shows that it was taken.
    channel.receive(std::as_writable_bytes(std::span(welcome)), deadline);
  } catch (const PeerError& error) {
    throw PeerError(site, fmt::format("{}; it may have refused this site's certificate, and its "
                                      "log says why",
                                      error.what()));
  }
  if (std::string_view(welcome.data(), welcome.size()) != kWelcome) {
    fail(site, "speaks another version of the protocol: use the same version of Farstep at both");
  }
  return channel;
}

std::string SecureChannel::topic() const {
  const char* name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

// OpenSSL refuses a new key inside a record, and sends the notice of one with the next record.
auto SecureChannel::sending(std::span<const std::byte> bytes) {
  return [this, bytes](SSL* ssl, std::size_t& sent) {
    if (bytes_under_key_ >= kBytesOfAKey && !is_sending_waiting_) {
      check_openssl(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "renew a key");
      bytes_under_key_ = 0;
    }
    const int result = SSL_write_ex(ssl, bytes.data(), bytes.size(), &sent);
    // OpenSSL has taken the bytes into a record that is not on the wire yet: the next call must
    // repeat them.
    is_sending_waiting_ = result != 1;
    bytes_under_key_ += sent;
    return result;
  };
}

// OpenSSL's queue of errors and errno belong to the thread, not to the call. So both are emptied
// before it, and read right after it.
template <typename Step>
SecureChannel::Outcome SecureChannel::attempt(const char* doing, Step step) {
  ERR_clear_error();
  errno = 0;
  std::size_t count = 0;
  const int result = step(ssl_.get(), count);
  const int error = errno;
  if (result == 1) return {SSL_ERROR_NONE, count};
  const int wanted = SSL_get_error(ssl_.get(), result);
  // These three are no failures: the peer has closed, or the socket is not ready.
  if (wanted != SSL_ERROR_ZERO_RETURN && wanted != SSL_ERROR_WANT_READ &&
      wanted != SSL_ERROR_WANT_WRITE) {
    fail(peer_, fmt::format("{}: {}", doing, failure_text(ssl_.get(), wanted, error)));
  }
  return {wanted};
}

// Calls `step` until it succeeds; returns what it counted, and 0 if the peer closed the channel.
template <typename Step>
std::size_t SecureChannel::repeat(const char* doing, Step step, Deadline deadline) {
  while (true) {
    const auto outcome = attempt(doing, step);
    if (outcome.wanted == SSL_ERROR_NONE) return outcome.count;
    if (outcome.wanted == SSL_ERROR_ZERO_RETURN) return 0;
    if (!wait_for_ssl(socket_.fd(), outcome.wanted, deadline)) {
      fail(peer_, fmt::format("{}: timed out", doing));
    }
  }
}

void SecureChannel::receive(std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto count = repeat(kCannotReceive, receiving(bytes), deadline);
    if (count == 0) fail(peer_, "cannot receive: the peer closed the channel");
    bytes = bytes.subspan(count);
  }
}

// SSL_shutdown() returns 0 when the notice is sent and the peer's has not come, which is enough.
void SecureChannel::close(Deadline deadline) {
  repeat(
      "cannot close",
      [](SSL* ssl, std::size_t&) {
        const int result = SSL_shutdown(ssl);
        return result == 0 ? 1 : result;
      },
      deadline);
}

// A partial write leaves the rest to the caller, who comes again when poll() reports room.
std::size_t SecureChannel::send_now(std::span<const std::byte> bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const auto outcome = attempt(kCannotSend, sending(bytes.subspan(sent)));
    if (outcome.wanted == SSL_ERROR_ZERO_RETURN) fail(peer_, "cannot send: the channel is closed");
    if (outcome.wanted != SSL_ERROR_NONE) break;
    sent += outcome.count;
  }
  return sent;
}

std::optional<std::size_t> SecureChannel::receive_now(std::span<std::byte> bytes) {
  const auto outcome = attempt(kCannotReceive, receiving(bytes));
  if (outcome.wanted == SSL_ERROR_ZERO_RETURN) return std::nullopt;
  return outcome.count;
}

void SecureChannel::renew_key() {
  bytes_under_key_ = kBytesOfAKey;
}

}  // namespace farstep::wan
