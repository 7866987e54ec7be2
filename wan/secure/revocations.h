// The certificates that a site lets in no more: the revocation list beside its key, which is read
// again when the file changes. What was revoked once stays so in this process. Thread-safe.
#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "wan/secure/openssl_handles.h"

namespace farstep {

class Revocations {
 public:
  // Begins with `list`, which `authority` has signed. `file` may have a newer one; empty: none.
  Revocations(std::filesystem::path file, CertificateHandle authority, const X509_CRL* list);

  // Whether a certificate is revoked by now. A newer list that is damaged, or of another authority,
  // is logged once and changes nothing.
  bool has(const X509* certificate);

 private:
  using FileTime = std::filesystem::file_time_type;

  // Returns when the file was written; its least value if it is not there.
  FileTime file_time() const;
  void read_if_changed();
  void add(const X509_CRL* list);

  const std::filesystem::path file_;
  const CertificateHandle authority_;
  std::mutex mutex_;
  FileTime time_;                  // guarded by mutex_, as the next one
  std::set<std::string> serials_;  // of the revoked certificates
};

}  // namespace farstep
