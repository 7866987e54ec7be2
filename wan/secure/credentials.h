// What a site shows to its peers, and whom it lets in: its key and certificate, the run's authority
// and the revocation list.
//
// Immutable; thread-safe. TLS 1.3 only, certificates on both ends, no resumption of sessions, which
// would pass by a newer revocation list.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "wan/secure/certificates.h"

namespace farstep {

class Credentials {
 public:
  // Reads the files of key_folder.h's site folder. Throws DataError that names the file if one is
  // missing or wrong, or if others may read the key.
  static Credentials from_folder(const std::filesystem::path& folder);

  // Throws DataError that names `place` unless the key is the certificate's, the authority signed
  // certificate and list, and the certificate is valid now and not revoked. Ignores SIGPIPE in this
  // process, because OpenSSL's writes can raise it.
  Credentials(KeyPair site, CertificateHandle authority, RevocationsHandle revoked,
              const std::string& place);

  const Identity& identity() const { return identity_; }
  SSL_CTX* context() const { return context_.get(); }

  // Returns why the peer of a finished handshake is refused; nullopt if it has a certificate of
  // this authority and run.
  std::optional<std::string> reason_to_refuse(const SSL* ssl) const;

 private:
  ContextHandle context_;
  Identity identity_;
};

}  // namespace farstep
