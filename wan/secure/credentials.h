// What a site shows to its peers, and whom it lets in: its key and certificate, the run's authority
// and the revocation list.
//
// Thread-safe. Only the revocation list changes: that of a folder is read again when its file is
// replaced. TLS 1.3 only, certificates on both ends, no resumption of sessions, which would pass by
// a newer revocation list.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "wan/secure/certificates.h"
#include "wan/secure/revocations.h"

namespace farstep::wan {

class Credentials {
 public:
  // Reads the files of key_folder.h's site folder. Throws DataError that names the file if one is
  // missing or wrong, or if others may read the key.
  static Credentials from_folder(const std::filesystem::path& folder);

  // The key must be the certificate's, the authority must have signed certificate and list, and the
  // certificate must be valid now. Else it throws DataError that names `place`. Ignores SIGPIPE in
  // this process, because OpenSSL's writes can raise it. `revocations_file`: where newer lists come
  // to; empty: none do.
  Credentials(KeyPair site, CertificateHandle authority, RevocationsHandle revoked,
              const std::string& place, const std::filesystem::path& revocations_file = {});

  const Identity& identity() const { return identity_; }
  // Returns the days until this site's certificate expires.
  double own_days_left() const;
  SSL_CTX* context() const { return context_.get(); }

  // Returns why the peer of a finished handshake is refused; nullopt if it has a certificate of
  // this authority and run.
  std::optional<std::string> reason_to_refuse(const SSL* ssl) const;
  // Whether a peer's certificate has been revoked, also since its handshake.
  bool is_revoked(const X509* certificate) const { return revocations_->has(certificate); }

 private:
  ContextHandle context_;
  Identity identity_;
  std::unique_ptr<Revocations> revocations_;
};

}  // namespace farstep::wan
