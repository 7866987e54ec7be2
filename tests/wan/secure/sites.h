// Credentials of made-up sites, and a stranger who shows any certificate.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "wan/secure/secure_channel.h"

namespace farstep::wan {

inline const std::vector<SocketAddress> kAnyPort{{"127.0.0.1", 0}};
inline constexpr double kLong = 60;  // seconds, more than any wait takes

// An authority with its sites. The list of revoked certificates may grow.
class Authority {
 public:
  explicit Authority(const std::string& run = "mine") : run_(run), pair_(make_authority(run)) {}

  const KeyPair& pair() const { return pair_; }
  KeyPair site(const std::string& name) const { return issue(pair_, {run_, name}, -1, 30); }
  // Credentials of `site`, which knows `revoked` as revoked.
  Credentials credentials(const KeyPair& site, const std::vector<const X509*>& revoked = {}) const;
  // Thread-safe, unlike the issue of a key as such: OpenSSL completes a certificate at its first
  // use.
  Credentials credentials(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return credentials(site(name));
  }

 private:
  std::string run_;
  KeyPair pair_;
  mutable std::mutex mutex_;
};

// Another owner of the same key and certificate.
KeyPair copy_of(const KeyPair& pair);

// Returns a channel from the site of `own` to `site`, which listens at `address`. Throws as
// SecureChannel::connect() does, within a minute.
SecureChannel connect_to(const SocketAddress& address, const std::string& site,
                         const Credentials& own);

// Waits until bytes have come, and returns how many; 0 if the peer closed the channel. Throws
// PeerError, also after a minute without any.
std::size_t receive_some(SecureChannel& channel, std::span<std::byte> bytes);

// Connects, makes a handshake with the certificate of `shown` (none if null) by TLS up to
// `version`, trusting everybody, and sends bytes. Returns all that the listener answered.
std::string visit(int port, const KeyPair* shown, int version = TLS1_3_VERSION);

}  // namespace farstep::wan
