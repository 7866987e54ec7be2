#include "wan/secure/handshake_fault.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <array>
#include <cstdlib>
#include <ctime>

namespace farstep::wan {

namespace {

// Closer clocks are not why a certificate is out of its dates, which are days apart.
constexpr int32_t kEqualSeconds = 600;

bool is_of_dates(long verified) {
  return verified == X509_V_ERR_CERT_NOT_YET_VALID || verified == X509_V_ERR_CERT_HAS_EXPIRED ||
         verified == X509_V_ERR_CRL_NOT_YET_VALID || verified == X509_V_ERR_CRL_HAS_EXPIRED;
}

// What OpenSSL sends of is_of_dates(), as the other end gets it.
bool is_alert_of_dates(unsigned long error) {
  const int reason = ERR_GET_REASON(error);
  return ERR_GET_LIB(error) == ERR_LIB_SSL && (reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
                                               reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED);
}

uint32_t clock_of_peer(const SSL* ssl) {
  std::array<unsigned char, 4> bytes{};
  const auto get = SSL_is_server(ssl) == 1 ? SSL_get_client_random : SSL_get_server_random;
  get(ssl, bytes.data(), bytes.size());
  uint32_t seconds = 0;
  for (const auto byte : bytes) seconds = seconds << 8 | byte;
  return seconds;
}

}  // namespace

void tell_clock(SSL_CTX* context) {
  SSL_CTX_set_mode(context, SSL_MODE_SEND_CLIENTHELLO_TIME | SSL_MODE_SEND_SERVERHELLO_TIME);
}

std::string handshake_fault(const SSL* ssl) {
  const auto verified = SSL_get_verify_result(ssl);
  const bool is_about_dates = is_of_dates(verified) || is_alert_of_dates(ERR_peek_last_error());
  // OpenSSL's errors say of a refused certificate only that it was refused.
  auto text = take_openssl_errors();
  if (verified != X509_V_OK) text = X509_verify_cert_error_string(verified);
  if (verified != X509_V_OK && !is_about_dates && verified != X509_V_ERR_CERT_REVOKED) {
    return text + "; do both sites have keys of one authority?";
  }
  if (!is_about_dates) return text;
  return text + "; " + clock_remark(static_cast<uint32_t>(std::time(nullptr)), clock_of_peer(ssl));
}

std::string clock_remark(uint32_t own, uint32_t of_peer) {
  const auto ahead = static_cast<int32_t>(own - of_peer);
  if (std::abs(ahead) < kEqualSeconds) return "this clock and that of the other end agree";
  return fmt::format("this clock is {:.1f} h {} that of the other end: set the one that is wrong",
                     std::abs(ahead / 3600.0), ahead < 0 ? "behind" : "ahead of");
}

}  // namespace farstep::wan
