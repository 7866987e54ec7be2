// A handshake takes as long as its visitor likes, so all of them go on at once, in steps that never
// wait. Until a visitor has shown its certificate it costs a bounded amount of memory, and crowds
// out only visitors from its own address.
#include "wan/secure/secure_listener.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>
#include <vector>

#include "trainer/base/error.h"
#include "wan/secure/handshake_fault.h"
#include "wan/sockets/local_address.h"

namespace farstep::wan {

namespace {

// A full queue makes a site's connection wait for a second or more, until the kernel sends again.
constexpr int kBacklog = 512;
constexpr std::string_view kHandshake = "refused at the TLS handshake";
constexpr std::string_view kCertificate = "refused a certificate";
constexpr std::string_view kSlow = "refused a slow visitor";
constexpr std::string_view kCrowded = "dropped a visitor, as there are too many";

}  // namespace

SecureListener::SecureListener(const std::vector<SocketAddress>& addresses,
                               const Credentials& credentials, Expected expected, Refused refused,
                               ListenerLimits limits)
    : credentials_(credentials),
      expected_(std::move(expected)),
      refused_(std::move(refused)),
      limits_(limits),
      sockets_(listen_at_all("the secure port", addresses, kBacklog)) {
  FARSTEP_CHECK(limits_.visitors > 0, "room for no visitor");
}

int SecureListener::port() const {
  return SocketAddress::local_of(sockets_.front().fd())->port();
}

std::optional<SecureChannel> SecureListener::accept(Deadline deadline) {
  while (true) {
    for (const auto& listener : sockets_) take_new(listener);
    for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
      const auto progress = visitor->is_ready ? advance(*visitor) : Progress::kWaits;
      if (progress == Progress::kIn) {
        auto site = identity_of(SSL_get0_peer_certificate(visitor->ssl.get())).site;
        SecureChannel channel(std::move(visitor->socket), std::move(visitor->ssl), std::move(site));
        visitors_.erase(visitor);
        return channel;
      }
      visitor = progress == Progress::kGone ? visitors_.erase(visitor) : std::next(visitor);
    }
    drop_late();
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    wait(deadline);
  }
}

// As many as are held at most, so that a flood of connections does not keep the others waiting.
void SecureListener::take_new(const Socket& listener) {
  for (std::size_t i = 0; i < limits_.visitors; ++i) {
    Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.fd() < 0) {
      // Connections wait, but the process has no file descriptor left: a loop here would spin.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        throw TcpError(std::system_category().message(errno), errno);
      }
      return;
    }
    // The address is kept as text: after a failed handshake the kernel may not know it any more.
    const auto from = SocketAddress::remote_of(socket.fd());
    if (!from) continue;  // gone again
    make_room();
    SslHandle ssl(SSL_new(credentials_.context()));
    check_openssl(ssl && SSL_set_fd(ssl.get(), socket.fd()) == 1, "make a connection");
    SSL_set_accept_state(ssl.get());
    visitors_.push_back({.socket = std::move(socket),
                         .ssl = std::move(ssl),
                         .ip = from->ip(),
                         .until = deadline_after(limits_.handshake_seconds)});
  }
}

void SecureListener::make_room() {
  if (visitors_.size() < limits_.visitors) return;
  std::map<std::string, int> by_ip;
  for (const auto& visitor : visitors_) ++by_ip[visitor.ip];
  // The oldest of the address with most visitors: max_element() returns the first of equals.
  const auto worst = std::max_element(
      visitors_.begin(), visitors_.end(),
      [&](const Visitor& a, const Visitor& b) { return by_ip[a.ip] < by_ip[b.ip]; });
  refuse(*worst, kCrowded, "it was the oldest from there");
  visitors_.erase(worst);
}

void SecureListener::wait(Deadline deadline) {
  std::vector<pollfd> entries;
  for (const auto& visitor : visitors_) {
    // A handshake may have to send while this end reads, and the other way round.
    const bool writes = visitor.wanted == SSL_ERROR_WANT_WRITE;
    entries.push_back({visitor.socket.fd(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    deadline = std::min(deadline, visitor.until);
  }
  for (const auto& listener : sockets_) entries.push_back({listener.fd(), POLLIN, 0});
  const int ready = poll(entries.data(), entries.size(), milliseconds_until(deadline));
  auto entry = entries.begin();
  for (auto& visitor : visitors_) visitor.is_ready = ready > 0 && (entry++)->revents != 0;
}

void SecureListener::drop_late() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(visitors_, [&](const Visitor& visitor) {
    if (now < visitor.until) return false;
    refuse(visitor, kSlow, fmt::format("no handshake in {} s", limits_.handshake_seconds));
    return true;
  });
}

SecureListener::Progress SecureListener::advance(Visitor& visitor) {
  auto* ssl = visitor.ssl.get();
  ERR_clear_error();
  int result = 1;
  if (!visitor.is_known) {
    result = SSL_do_handshake(ssl);
    if (result == 1) {
      if (const auto reason = credentials_.reason_to_refuse(ssl)) {
        return refuse(visitor, kCertificate, *reason);
      }
      const auto site = identity_of(SSL_get0_peer_certificate(ssl)).site;
      if (!expected_(site)) {
        return refuse(visitor, kCertificate, fmt::format("site \"{}\" is not expected", site));
      }
      visitor.is_known = true;
    }
  }
  if (visitor.is_known) {
    std::size_t sent = 0;
    // 10 bytes are one record, and so are sent whole or not at all.
    result = SSL_write_ex(ssl, kWelcome.data(), kWelcome.size(), &sent);
    if (result == 1) return Progress::kIn;
  }
  visitor.wanted = SSL_get_error(ssl, result);
  if (visitor.wanted == SSL_ERROR_WANT_READ || visitor.wanted == SSL_ERROR_WANT_WRITE) {
    return Progress::kWaits;
  }
  const bool is_certificate_bad = SSL_get_verify_result(ssl) != X509_V_OK;
  return refuse(visitor, is_certificate_bad ? kCertificate : kHandshake, handshake_fault(ssl));
}

SecureListener::Progress SecureListener::refuse(const Visitor& visitor, std::string_view kind,
                                                const std::string& reason) {
  refused_(kind, fmt::format("from {}: {}", visitor.ip, reason));
  return Progress::kGone;
}

}  // namespace farstep::wan
