// Listens on a port, and lets in only sites with a certificate of the run.
//
// A visitor is a connection that has not shown a valid certificate yet. Nothing that it sends is
// read but by OpenSSL's handshake. At most `visitors` are held at once, each for at most
// `handshake_seconds`. If one more comes, the oldest of the address with most visitors goes. So one
// stranger's connections push out each other, and no site's.
//
// One thread at a time uses it.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>

#include "wan/secure/secure_channel.h"

namespace farstep::wan {

struct ListenerLimits {
  std::size_t visitors = 64;
  double handshake_seconds = 10;
};

class SecureListener {
 public:
  // Whether a site of that name may enter now.
  using Expected = std::function<bool(const std::string& site)>;
  // Gets every refusal: its kind, a constant, and a text that a stranger may have influenced.
  // Whoever logs it must limit how often (membership's StrangerLog does).
  using Refused = std::function<void(std::string_view kind, const std::string& text)>;

  // Listens as listen_at_all(), and throws as that. `credentials` must outlive it.
  SecureListener(const std::vector<SocketAddress>& addresses, const Credentials& credentials,
                 Expected expected, Refused refused, ListenerLimits limits = {});

  // Returns the port.
  int port() const;
  // Returns how many visitors are held.
  std::size_t visitors() const { return visitors_.size(); }
  // Waits for the next site that is let in; nullopt at the deadline. Throws TcpError if the process
  // has no file descriptor left.
  std::optional<SecureChannel> accept(Deadline deadline);

 private:
  struct Visitor {
    Socket socket;
    SslHandle ssl;
    std::string ip;
    Deadline until;
    int wanted = 0;         // what its handshake waits for, an SSL_ERROR_WANT_*
    bool is_ready = true;   // whether that may be there
    bool is_known = false;  // its certificate was accepted; only the welcome is to be sent
  };
  enum class Progress { kWaits, kGone, kIn };

  void take_new(const Socket& listener);
  void make_room();
  void wait(Deadline deadline);
  void drop_late();
  Progress advance(Visitor& visitor);
  Progress refuse(const Visitor& visitor, std::string_view kind, const std::string& reason);

  const Credentials& credentials_;
  Expected expected_;
  Refused refused_;
  ListenerLimits limits_;
  std::vector<Socket> sockets_;
  std::list<Visitor> visitors_;  // the oldest first
};

}  // namespace farstep::wan
