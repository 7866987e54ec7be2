// The TCP sockets of this process, those that a library opened and does not show included.
//
// Free functions are thread-safe; SocketCounter is not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "wan/transport/line_sample.h"
#include "wan/transport/tcp.h"

namespace farstep {

// The descriptor of a socket whose local and remote address (nothing if it is not connected)
// satisfy `wanted`; -1 if there is none.
int find_socket(const std::function<bool(const SocketAddress& local,
                                         const std::optional<SocketAddress>& remote)>& wanted);

// The descriptors of the connections from `ip`.
std::vector<int> connections_from(const std::string& ip);

// Makes the kernel drop what comes to this socket from any address but `source_ip`: on a listening
// socket, strangers see a port that does not answer. Throws InternalError if the kernel refuses.
void accept_only_from(int fd, const std::string& source_ip);

// Probes an idle connection every half minute, so that routers and firewalls do not forget it and a
// peer that vanished is noticed within two minutes.
void keep_alive(int fd);

// Lets the kernel's `congestion_control` ("bbr", "cubic") pace what this socket sends, if the
// kernel has it and allows it; what it paces with now. Empty changes nothing.
std::string pace_with(int fd, const std::string& congestion_control);

// Lets the kernel send no faster on this socket, packets evenly spread; infinity sets no
// limit. Throws InternalError.
void limit_pace(int fd, double bits_per_second);

// The least round trip that the kernel saw on a connection.
double kernel_rtt_seconds(int fd);

// TCP payload, as the kernel counted it, without headers.
struct SocketBytes {
  uint64_t sent = 0;  // without retransmissions
  uint64_t received = 0;
  uint64_t retransmitted = 0;
  SocketBytes& operator+=(const SocketBytes& other) {
    sent += other.sent;
    received += other.received;
    retransmitted += other.retransmitted;
    return *this;
  }
};

// What the kernel knows of a connection since it was made.
struct SocketFacts {
  SocketBytes bytes;
  double rtt_seconds = 0;      // the round trip that it last saw, smoothed
  double sending_seconds = 0;  // in which something was not acknowledged, to a few milliseconds
  LineSample line;             // without its time
};

// Follows a connected socket that somebody else owns, and may close.
class SocketCounter {
 public:
  explicit SocketCounter(int fd);
  // What the kernel knows now; once the socket is closed, what it knew at the last look.
  const SocketFacts& look();
  // limit_pace() and pace_with(), if the socket is still there.
  void limit_pace(double bits_per_second);
  void pace_with(const std::string& congestion_control);

 private:
  bool is_open() const;

  int fd_;
  std::optional<SocketAddress> local_, remote_;
  SocketFacts facts_;
};

}  // namespace farstep
