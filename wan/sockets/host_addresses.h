// Where a host is that a config names: its addresses, and which of them to try next.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {

// No address is known for a name. A later look may find one.
class UnknownHostError : public PeerError {
 public:
  explicit UnknownHostError(const std::string& message) : PeerError("", message) {}
};

// Returns the addresses of a host, each once, in the order in which the system would try them (RFC
// 6724). There is at least one. An IP address is not looked up. Waits as long as the system's
// resolver does, see resolv.conf(5). Throws UnknownHostError, whose message begins with `field`.
std::vector<SocketAddress> look_up(const std::string& field, const HostPort& place);

// Returns the IP addresses for a message: "10.0.0.5 and fd00::5".
std::string text_of(const std::vector<SocketAddress>& addresses);

// Returns why a connection to `address` failed: the system's reason, and mostly what that means.
std::string connecting_failure(const SocketAddress& address, const TcpError& error);

// The addresses of one host, to be tried in turn. A turn begins with the address that worked last.
// After a turn in which none worked, a name is looked up anew, on another thread: a look-up may
// take long, and cannot be stopped.
//
// Thread-safe.
class HostAddresses {
 public:
  using LookUp = std::function<std::vector<SocketAddress>(const HostPort& place)>;

  // `look_up` is called on a thread that may outlive this object. Throws ConfigError for an IP
  // address of an interface that this machine does not have.
  explicit HostAddresses(HostPort place, LookUp look_up = of_system());

  // Returns the address to try now, the same one until a call of fail(). Returns nullopt if the
  // turn is over, or the name is still being looked up after `patience_seconds`: a later call
  // begins the next turn.
  std::optional<SocketAddress> next(double patience_seconds = 0);
  void fail(const SocketAddress& address, const std::string& reason);
  void succeed(const SocketAddress& address);

  // Whether the host is an IP address, which stays the only one.
  bool is_fixed() const { return is_fixed_; }
  // Returns what was tried in vain since something worked, with the reasons, or why the name has no
  // address. Empty if there is nothing of that.
  std::string failure() const;

 private:
  static LookUp of_system();
  void ask();
  void take_answer(double patience_seconds);

  const HostPort place_;
  const LookUp look_up_;
  const bool is_fixed_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<SocketAddress> addresses_;
  std::size_t next_ = 0;
  std::optional<SocketAddress> worked_;
  std::vector<std::pair<SocketAddress, std::string>> failures_;
  std::string unknown_;  // why the newest look-up found nothing
  std::future<std::vector<SocketAddress>> answer_;
  std::chrono::steady_clock::time_point next_ask_{};
};

}  // namespace farstep::wan
