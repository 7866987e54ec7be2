// Brings a site's connections to its peers through one port, so that all listeners and connections
// of the data path stay on this machine. wan/tunnel has the real one.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "wan/sockets/process_sockets.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {

// A loopback address that stands for a peer: 127.77.0.1 for number 0, and so on. Gloo compares the
// addresses of two sites to decide which one dials, so both must number the sites alike.
std::string loopback_ip(int number);

// The way to a service of a peer: who connects to `address` reaches it, as long as `hold` exists.
struct Way {
  SocketAddress address;
  std::shared_ptr<const void> hold;
};

class Relay {
 public:
  virtual ~Relay() = default;

  // Lets `peer` reach the socket that listens at `address`, as long as the result exists. Its
  // connections come from `source_ip`. `service` is a name of letters, digits and "/".
  virtual std::shared_ptr<const void> offer(const std::string& peer, const std::string& service,
                                            const SocketAddress& address,
                                            const std::string& source_ip) = 0;
  // Listens at `ip` for connections that lead to `service` of `peer`. Those of different lanes do
  // not wait for each other. Throws TcpError.
  virtual Way way_to(const std::string& peer, int lane, const std::string& service,
                     const std::string& ip) = 0;
  // Returns what carries the bytes of a lane, with figures from now on.
  virtual std::shared_ptr<Line> line(const std::string& peer, int lane) = 0;
};

// Lanes of a relay: the first ones are taken, those of the data path follow.
inline constexpr int kControlLane = 0;
inline constexpr int kStateLane = 1;
inline constexpr int kFirstDataLane = 2;

}  // namespace farstep::wan
