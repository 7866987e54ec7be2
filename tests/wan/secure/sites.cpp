#include "tests/wan/secure/sites.h"

#include <openssl/err.h>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

constexpr double kTestSeconds = 60;

}  // namespace

KeyPair copy_of(const KeyPair& pair) {
  EVP_PKEY_up_ref(pair.key.get());
  X509_up_ref(pair.certificate.get());
  return {KeyHandle(pair.key.get()), CertificateHandle(pair.certificate.get())};
}

Credentials Authority::credentials(const KeyPair& site,
                                   const std::vector<const X509*>& revoked) const {
  return {copy_of(site), std::move(copy_of(pair_).certificate), revoke(pair_, nullptr, revoked),
          "test"};
}

SecureChannel connect_to(const SocketAddress& address, const std::string& site,
                         const Credentials& own) {
  const auto deadline = deadline_after(kTestSeconds);
  return SecureChannel::connect(connect_tcp(address, deadline), site, "", own, deadline);
}

std::size_t receive_some(SecureChannel& channel, std::span<std::byte> bytes) {
  const auto deadline = deadline_after(kTestSeconds);
  while (true) {
    const auto count = channel.receive_now(bytes);
    if (!count || *count > 0) return count.value_or(0);
    if (!wait_for_ssl(channel.fd(), SSL_ERROR_WANT_READ, deadline)) {
      throw PeerError(channel.peer(), "no byte came in time");
    }
  }
}

std::string visit(int port, const KeyPair* shown, int version) {
  const ContextHandle context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(context.get(), version);
  if (shown != nullptr) {
    SSL_CTX_use_certificate(context.get(), shown->certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), shown->key.get());
  }
  const auto deadline = deadline_after(kTestSeconds);
  const auto socket = connect_tcp({"127.0.0.1", port}, deadline);
  const SslHandle ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), socket.fd());
  SSL_set_connect_state(ssl.get());
  // Sends "hello" as soon as it can, and reads to the end.
  std::string answer;
  bool has_sent = false;
  while (true) {
    ERR_clear_error();
    char piece[256];
    std::size_t count = 0;
    int result = 0;
    if (!has_sent) {
      result = SSL_write_ex(ssl.get(), "hello", 5, &count);
      has_sent = result == 1;
    } else {
      result = SSL_read_ex(ssl.get(), piece, sizeof(piece), &count);
      if (result == 1) answer.append(piece, count);
    }
    const int wanted = SSL_get_error(ssl.get(), result);
    if (result == 1) continue;
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) break;
    if (!wait_for_ssl(socket.fd(), wanted, deadline)) break;
  }
  ERR_clear_error();
  return answer;
}

}  // namespace farstep::wan
