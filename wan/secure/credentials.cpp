#include "wan/secure/credentials.h"

#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <csignal>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "wan/secure/handshake_fault.h"
#include "wan/secure/key_folder.h"

namespace farstep::wan {

namespace {

// A certificate of ours has about 500 bytes. OpenSSL's own limit of 100 KiB would be for each
// visitor.
constexpr int kLargestCertificates = 4096;

using StoreContextHandle = std::unique_ptr<X509_STORE_CTX, detail::FreedBy<X509_STORE_CTX_free>>;

void trust(X509_STORE* store, X509* authority, X509_CRL* revoked) {
  check_openssl(X509_STORE_add_cert(store, authority) == 1 &&
                    X509_STORE_add_crl(store, revoked) == 1 &&
                    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK) == 1,
                "trust an authority");
}

// Returns the hours from one time to a later one; null is now.
double hours_between(const ASN1_TIME* from, const ASN1_TIME* to) {
  int days = 0, seconds = 0;
  check_openssl(ASN1_TIME_diff(&days, &seconds, from, to) == 1, "compare times");
  return 24 * days + seconds / 3600.0;
}

// Returns what OpenSSL has against a certificate or the list of revoked ones, and what mends it.
// What is not valid yet means a wrong clock; new keys would be refused too.
std::string refusal_text(int error, const X509* certificate, const X509_CRL* revoked) {
  const std::string reason = X509_verify_cert_error_string(error);
  const auto early = [&](const ASN1_TIME* begin) {
    return fmt::format(
        "{}: this clock is {:.1f} h before its begin; set the clock of this machine, or of the one "
        "that made the keys",
        reason, hours_between(nullptr, begin));
  };
  const auto late = [&](const ASN1_TIME* end) {
    return fmt::format(
        "{}: this clock is {:.1f} h after its end; if the clock is right, make new keys with "
        "`farstep keys`",
        reason, hours_between(end, nullptr));
  };
  switch (error) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return early(X509_get0_notBefore(certificate));
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return early(X509_CRL_get0_lastUpdate(revoked));
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return late(X509_get0_notAfter(certificate));
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return late(X509_CRL_get0_nextUpdate(revoked));
    default:
      return reason + "; make new keys with `farstep keys`";
  }
}

// Checks the own certificate as the peers will: their refusal would reach this site without a
// cause.
void check_own(X509_STORE* store, X509* certificate, const X509_CRL* revoked,
               const std::string& place) {
  const StoreContextHandle check(X509_STORE_CTX_new());
  check_openssl(check && X509_STORE_CTX_init(check.get(), store, certificate, nullptr) == 1,
                "check a certificate");
  if (X509_verify_cert(check.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(check.get());
    take_openssl_errors();
    throw DataError(fmt::format("{}: the peers would refuse this site's certificate: {}", place,
                                refusal_text(error, certificate, revoked)));
  }
}

}  // namespace

Credentials Credentials::from_folder(const std::filesystem::path& folder) {
  // Whoever reads the key can act as this site; the other files are no secrets.
  const auto key = folder / kSiteKeyFile;
  struct stat status {};
  if (::stat(key.c_str(), &status) == 0 && (status.st_mode & 077) != 0) {
    throw DataError(fmt::format("{}: other users may read or write this key: `chmod 600 {}`",
                                key.string(), key.string()));
  }
  const auto certificate = folder / kSiteCertificateFile;
  const auto authority = folder / kAuthorityFile;
  const auto revoked = folder / kRevocationsFile;
  return {{read_key(read_file(key), key.string()),
           read_certificate(read_file(certificate), certificate.string())},
          read_certificate(read_file(authority), authority.string()),
          read_revocations(read_file(revoked), revoked.string()),
          folder.string(),
          revoked};
}

Credentials::Credentials(KeyPair site, CertificateHandle authority, RevocationsHandle revoked,
                         const std::string& place, const std::filesystem::path& revocations_file)
    : context_(SSL_CTX_new(TLS_method())), identity_(identity_of(site.certificate.get())) {
  // OpenSSL writes with write(2), and a peer that is gone would end the process.
  ::signal(SIGPIPE, SIG_IGN);
  auto* context = context_.get();
  check_openssl(context != nullptr, "make a context");
  if (identity_.run.empty() || identity_.site.empty()) {
    throw DataError(fmt::format("{}: the certificate does not name a run and a site", place));
  }
  if (X509_check_private_key(site.certificate.get(), site.key.get()) != 1) {
    throw DataError(fmt::format("{}: {} is not the key of {}: {}", place, kSiteKeyFile,
                                kSiteCertificateFile, take_openssl_errors()));
  }
  auto* store = SSL_CTX_get_cert_store(context);
  trust(store, authority.get(), revoked.get());
  check_own(store, site.certificate.get(), revoked.get(), place);
  check_openssl(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_use_certificate(context, site.certificate.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(context, site.key.get()) == 1 &&
                    SSL_CTX_set_num_tickets(context, 0) == 1,
                "set up TLS");
  revocations_ =
      std::make_unique<Revocations>(revocations_file, std::move(authority), revoked.get());
  // OpenSSL verifies during the handshake, so nothing else of a visitor without a certificate is
  // read. Depth 0: the authority has signed the peer's certificate itself.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(context, 0);
  SSL_CTX_set_max_cert_list(context, kLargestCertificates);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // An event loop calls with what fits, and may have moved its buffer before it repeats a call.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  tell_clock(context);
}

double Credentials::own_days_left() const {
  return days_left(SSL_CTX_get0_certificate(context_.get()));
}

// After OpenSSL's own checks: these are about what the certificate says, which only this program
// reads.
std::optional<std::string> Credentials::reason_to_refuse(const SSL* ssl) const {
  const X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return "it has no certificate";
  if (const auto result = SSL_get_verify_result(ssl); result != X509_V_OK) {
    return X509_verify_cert_error_string(result);
  }
  if (is_revoked(certificate)) return "certificate revoked";
  const auto peer = identity_of(certificate);
  if (peer.run != identity_.run) {
    return fmt::format("its certificate is of the run \"{}\", not \"{}\"", peer.run, identity_.run);
  }
  if (peer.site.empty()) return "its certificate names no site";
  return std::nullopt;
}

}  // namespace farstep::wan
