// Keys, certificates and the revocation list of a run, in memory and as PEM text.
//
// An authority signs the certificates of one run's sites. A certificate's subject has the run as
// organization and the site as common name. Keys are Ed25519. No state; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wan/secure/openssl_handles.h"

namespace farstep::wan {

struct Identity {
  std::string run, site;
  bool operator==(const Identity&) const = default;
};

struct KeyPair {
  KeyHandle key;
  CertificateHandle certificate;
};

// Throws ConfigError unless a certificate can have `name` as a run or site: 1 to 64 letters,
// digits, "-", "_" and ".", the first one a letter or digit. So a name is also a folder's.
void check_certified_name(std::string_view name);

// Returns a new authority of `run`, valid for ten years. Throws ConfigError for a wrong name.
KeyPair make_authority(const std::string& run);

// Returns a new key with a certificate that `authority` signs. It is valid from `from_days` to
// `to_days` after now. Throws ConfigError for a wrong name.
KeyPair issue(const KeyPair& authority, const Identity& identity, int64_t from_days,
              int64_t to_days);

// Returns a signed list of the revoked certificates: those of `before`, which may be null, and
// `certificates`. It is valid for as long as the authority.
RevocationsHandle revoke(const KeyPair& authority, X509_CRL* before,
                         const std::vector<const X509*>& certificates);

// Returns whom a certificate names; empty texts for what it lacks, has twice or that is no name.
Identity identity_of(const X509* certificate);

// Returns the days until a certificate expires; negative if it has. Throws InternalError.
double days_left(const X509* certificate);

std::string key_pem(const EVP_PKEY* key);
std::string certificate_pem(const X509* certificate);
std::string revocations_pem(const X509_CRL* list);
// Read PEM text. Throw DataError that names `place`.
KeyHandle read_key(std::string_view pem, const std::string& place);
CertificateHandle read_certificate(std::string_view pem, const std::string& place);
RevocationsHandle read_revocations(std::string_view pem, const std::string& place);

}  // namespace farstep::wan
