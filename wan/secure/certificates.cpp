// OpenSSL builds and reads the certificates; this unit decides what stands in them. The least that
// serves: an authority that signs sites and nothing below them, and sites with a run and a name. So
// a peer's certificate needs no chain, and its subject says all that a site asks.
#include "wan/secure/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// Longer than any run; sites' certificates end earlier, as their user wants.
constexpr int64_t kAuthorityDays = 3650;
// Clocks of sites differ; a new certificate is valid at once everywhere.
constexpr int64_t kClockDays = 1;
constexpr int64_t kSecondsADay = 86'400;
constexpr std::size_t kLongestName = 64;  // of X.509's common names

using MemoryHandle = std::unique_ptr<BIO, detail::FreedBy<BIO_free>>;
using ExtensionHandle = std::unique_ptr<X509_EXTENSION, detail::FreedBy<X509_EXTENSION_free>>;
using TimeHandle = std::unique_ptr<ASN1_TIME, detail::FreedBy<ASN1_TIME_free>>;
using SerialHandle = std::unique_ptr<ASN1_INTEGER, detail::FreedBy<ASN1_INTEGER_free>>;
using RevokedHandle = std::unique_ptr<X509_REVOKED, detail::FreedBy<X509_REVOKED_free>>;

// Names stand in file names, in log lines and in X.509 subjects. These characters mean the same in
// all three, and no such name leads out of a folder.
bool is_certified_name(std::string_view name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= kLongestName && is_alphanumeric(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

// Serial numbers are drawn, so that an authority needs no counter that copies of it could share.
void draw_serial(X509* certificate) {
  unsigned char bytes[16];
  check_openssl(RAND_bytes(bytes, sizeof(bytes)) == 1, "draw a serial number");
  bytes[0] = (bytes[0] & 0x3f) | 0x40;  // positive, and of one length
  const std::unique_ptr<BIGNUM, detail::FreedBy<BN_free>> number(
      BN_bin2bn(bytes, sizeof(bytes), nullptr));
  check_openssl(number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)),
                "set a serial number");
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
  check_openssl(X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC,
                                           reinterpret_cast<const unsigned char*>(value.data()),
                                           static_cast<int>(value.size()), -1, 0) == 1,
                "set a subject");
}

void add_extension(X509* certificate, const X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, const_cast<X509*>(issuer), certificate, nullptr, nullptr, 0);
  const ExtensionHandle extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  check_openssl(extension && X509_add_ext(certificate, extension.get(), -1) == 1,
                "add an extension");
}

// A certificate with all but subject, extensions and signature.
KeyPair new_pair(int64_t from_days, int64_t to_days) {
  // Ed25519: small keys and signatures, and no parameters that somebody could choose badly.
  KeyPair pair{KeyHandle(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")),
               CertificateHandle(X509_new())};
  check_openssl(pair.key && pair.certificate, "make a key");
  auto* certificate = pair.certificate.get();
  draw_serial(certificate);
  check_openssl(
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
          X509_gmtime_adj(X509_getm_notBefore(certificate), from_days * kSecondsADay) != nullptr &&
          X509_gmtime_adj(X509_getm_notAfter(certificate), to_days * kSecondsADay) != nullptr &&
          X509_set_pubkey(certificate, pair.key.get()) == 1,
      "fill a certificate");
  return pair;
}

std::string name_entry(const X509_NAME* name, int field) {
  // Two names of one kind count as none: which of them another program reads is not certain.
  const int at = X509_NAME_get_index_by_NID(name, field, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(name, field, at) >= 0) return "";
  const auto* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
  const std::string value(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                          static_cast<std::size_t>(ASN1_STRING_length(text)));
  return is_certified_name(value) ? value : "";
}

template <typename Write>
std::string to_pem(Write write) {
  const MemoryHandle memory(BIO_new(BIO_s_mem()));
  check_openssl(memory && write(memory.get()) == 1, "write PEM");
  char* text = nullptr;
  const auto length = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(length)};
}

template <typename Handle, typename Read>
Handle from_pem(std::string_view pem, const std::string& place, const char* kind, Read read) {
  const MemoryHandle memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  check_openssl(memory != nullptr, "read PEM");
  // An earlier error of this thread would be given as the reason.
  ERR_clear_error();
  Handle object(read(memory.get()));
  if (!object) {
    throw DataError(
        fmt::format("{}: has no {} in PEM format: {}", place, kind, take_openssl_errors()));
  }
  return object;
}

// A key with a passphrase would make OpenSSL ask at the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

void check_certified_name(std::string_view name) {
  if (is_certified_name(name)) return;
  throw ConfigError(fmt::format(
      "\"{}\" cannot be a name in a certificate: use 1 to 64 letters, digits, \"-\", \"_\" "
      "and \".\", and begin with a letter or digit",
      name));
}

KeyPair make_authority(const std::string& run) {
  check_certified_name(run);
  auto pair = new_pair(-kClockDays, kAuthorityDays);
  auto* certificate = pair.certificate.get();
  auto* subject = X509_get_subject_name(certificate);
  add_name(subject, "O", run);
  add_name(subject, "CN", "authority");
  check_openssl(X509_set_issuer_name(certificate, subject) == 1, "set an issuer");
  // pathlen 0: a site's certificate cannot sign others, whatever it says.
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  check_openssl(X509_sign(certificate, pair.key.get(), nullptr) > 0, "sign a certificate");
  return pair;
}

KeyPair issue(const KeyPair& authority, const Identity& identity, int64_t from_days,
              int64_t to_days) {
  check_certified_name(identity.run);
  check_certified_name(identity.site);
  auto pair = new_pair(from_days, to_days);
  auto* certificate = pair.certificate.get();
  const auto* issuer = authority.certificate.get();
  add_name(X509_get_subject_name(certificate), "O", identity.run);
  add_name(X509_get_subject_name(certificate), "CN", identity.site);
  check_openssl(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1,
                "set an issuer");
  add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature");
  // A site accepts connections and makes them.
  add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(certificate, issuer, NID_subject_key_identifier, "hash");
  add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
  check_openssl(X509_sign(certificate, authority.key.get(), nullptr) > 0, "sign a certificate");
  return pair;
}

RevocationsHandle revoke(const KeyPair& authority, X509_CRL* before,
                         const std::vector<const X509*>& certificates) {
  RevocationsHandle list(X509_CRL_new());
  const TimeHandle now(X509_gmtime_adj(nullptr, 0));
  // A site whose clock is behind must accept the list as well.
  const TimeHandle valid_from(X509_gmtime_adj(nullptr, -kClockDays * kSecondsADay));
  const auto* issuer = authority.certificate.get();
  check_openssl(list && now && valid_from &&
                    X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
                    X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(issuer)) == 1 &&
                    X509_CRL_set1_lastUpdate(list.get(), valid_from.get()) == 1 &&
                    X509_CRL_set1_nextUpdate(list.get(), X509_get0_notAfter(issuer)) == 1,
                "make a revocation list");
  const auto add = [&](RevokedHandle revoked) {
    check_openssl(revoked && X509_CRL_add0_revoked(list.get(), revoked.get()) == 1, "revoke");
    revoked.release();
  };
  // The list before is copied, not extended: a list is signed as a whole.
  auto* old = before != nullptr ? X509_CRL_get_REVOKED(before) : nullptr;
  for (int i = 0; i < sk_X509_REVOKED_num(old); ++i) {
    add(RevokedHandle(X509_REVOKED_dup(sk_X509_REVOKED_value(old, i))));
  }
  for (const auto* certificate : certificates) {
    RevokedHandle revoked(X509_REVOKED_new());
    const SerialHandle serial(ASN1_INTEGER_dup(X509_get0_serialNumber(certificate)));
    check_openssl(revoked && serial &&
                      X509_REVOKED_set_serialNumber(revoked.get(), serial.get()) == 1 &&
                      X509_REVOKED_set_revocationDate(revoked.get(), now.get()) == 1,
                  "revoke");
    add(std::move(revoked));
  }
  check_openssl(
      X509_CRL_sort(list.get()) == 1 && X509_CRL_sign(list.get(), authority.key.get(), nullptr) > 0,
      "sign a revocation list");
  return list;
}

Identity identity_of(const X509* certificate) {
  const auto* subject = X509_get_subject_name(certificate);
  return {.run = name_entry(subject, NID_organizationName),
          .site = name_entry(subject, NID_commonName)};
}

double days_left(const X509* certificate) {
  int days = 0, seconds = 0;
  // From now on, as the first time is null.
  check_openssl(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) == 1,
                "read the end of a certificate");
  return days + seconds / static_cast<double>(kSecondsADay);
}

std::string key_pem(const EVP_PKEY* key) {
  return to_pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string certificate_pem(const X509* certificate) {
  return to_pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string revocations_pem(const X509_CRL* list) {
  return to_pem([&](BIO* out) { return PEM_write_bio_X509_CRL(out, list); });
}

KeyHandle read_key(std::string_view pem, const std::string& place) {
  return from_pem<KeyHandle>(pem, place, "private key", [](BIO* in) {
    return PEM_read_bio_PrivateKey(in, nullptr, no_passphrase, nullptr);
  });
}

CertificateHandle read_certificate(std::string_view pem, const std::string& place) {
  return from_pem<CertificateHandle>(pem, place, "certificate", [](BIO* in) {
    return PEM_read_bio_X509(in, nullptr, no_passphrase, nullptr);
  });
}

RevocationsHandle read_revocations(std::string_view pem, const std::string& place) {
  return from_pem<RevocationsHandle>(pem, place, "revocation list", [](BIO* in) {
    return PEM_read_bio_X509_CRL(in, nullptr, no_passphrase, nullptr);
  });
}

}  // namespace farstep::wan
