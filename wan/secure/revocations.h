// The certificates that a site lets in no more: the revocation list beside its key, which is read
// again when the file changes. What was revoked once stays so in this process. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "wan/secure/openssl_handles.h"

namespace farstep::wan {

class Revocations {
 public:
  // Begins with `list`, which `authority` has signed. `file` may have a newer one; empty: none.
  Revocations(std::filesystem::path file, CertificateHandle authority, const X509_CRL* list);

  // Whether a certificate is revoked by now. A newer list that is damaged, or of another authority,
  // is logged once and changes nothing.
  bool has(const X509* certificate);

 private:
  // What differs between a file and the one that replaces it. Its time alone does not: the clock of
  // files ticks slowly.
  struct Version {
    uint64_t inode = 0;
    int64_t bytes = 0, seconds = 0, nanoseconds = 0;
    bool operator==(const Version&) const = default;
  };

  // Returns the file's present version; nullopt if there is no file.
  std::optional<Version> version() const;
  void read_if_changed();
  void add(const X509_CRL* list);

  const std::filesystem::path file_;
  const CertificateHandle authority_;
  std::mutex mutex_;
  std::optional<Version> read_version_;  // guarded by mutex_, as the next one
  std::set<std::string> serials_;        // of the revoked certificates
};

}  // namespace farstep::wan
