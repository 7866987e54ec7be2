// IP addresses, and TCP sockets with deadlines, for what sites send beside Gloo.
//
// Functions throw TcpError with the system's message; callers add what the user can do.
// Thread-safe, but one thread at a time uses a Socket.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "wan/sockets/host_port.h"

namespace farstep::wan {

// An IPv4 or IPv6 address with a port. An IPv4 address within IPv6, as a socket of both families
// gives it, is an IPv4 address here.
class SocketAddress {
 public:
  // Throws ConfigError unless `ip` is an IP address in text form. Of a link-local one this machine
  // must have the interface.
  SocketAddress(const std::string& ip, int port);
  explicit SocketAddress(const sockaddr_storage& storage);
  // The address of a socket's own end and of its other end; nullopt if `fd` has none.
  static std::optional<SocketAddress> local_of(int fd);
  static std::optional<SocketAddress> remote_of(int fd);

  // "10.0.0.1", "::1", "fe80::1%eth0".
  std::string ip() const;
  int port() const;
  HostPort place() const { return {.host = ip(), .port = port()}; }
  // "10.0.0.1:4000", "[::1]:4000".
  std::string text() const { return place().text(); }
  int family() const { return storage_.ss_family; }
  bool is_loopback() const;
  bool is_link_local() const;
  SocketAddress with_port(int port) const;
  const sockaddr_storage& storage() const { return storage_; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;
  bool operator==(const SocketAddress& other) const;

 private:
  sockaddr_storage storage_{};
};

class TcpError : public std::runtime_error {
 public:
  explicit TcpError(const std::string& message, int error = 0)
      : std::runtime_error(message), error_(error) {}
  // Returns the number of the system's error, such as EADDRINUSE or, at a deadline, ETIMEDOUT; 0 if
  // it is none of these.
  int error() const { return error_; }

 private:
  int error_;
};

using Deadline = std::chrono::steady_clock::time_point;
// Returns now and `seconds`, of which more than 1e9 count as so many.
Deadline deadline_after(double seconds);
// Returns milliseconds until `deadline`, rounded up, 0 if it has passed; for poll(2).
int milliseconds_until(Deadline deadline);

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// Returns a non-blocking socket that listens on `address`; at :: for both families. At most
// `backlog` connections wait to be accepted.
Socket listen_tcp(const SocketAddress& address, int backlog = 16);

// Begins a connection to `address`, from `source_ip` unless that is empty. The socket becomes
// writable when the attempt is over; finish_connect() throws then if it has failed. Neither waits.
Socket begin_connect(const SocketAddress& address, const std::string& source_ip = "");
void finish_connect(const Socket& socket);
// Returns a non-blocking connection, as begin_connect() makes it. Waits until it exists, or throws
// at the deadline.
Socket connect_tcp(const SocketAddress& address, Deadline deadline,
                   const std::string& source_ip = "");

// Sends `line` and a line feed.
void send_line(const Socket& socket, const std::string& line, Deadline deadline);

// Returns the next line of at most kLongestLine bytes, without its line feed. The sender must not
// send more before it gets an answer.
std::string receive_line(const Socket& socket, Deadline deadline);
inline constexpr std::size_t kLongestLine = 256;

}  // namespace farstep::wan
