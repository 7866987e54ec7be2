// The connections at a listener that have not shown yet whose they are: each does so by its first
// line. Whoever connects may be a stranger, who says nothing or something else. So few are kept,
// each for a short time, and none holds up another.
//
// Not thread-safe. The owner polls: begin_wait() adds what to poll for, and hear() takes the
// result.
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wan/sockets/tcp.h"

namespace farstep::wan {

class FirstLines {
 public:
  // Receives a connection and its first line, and may keep the connection by moving from it. A
  // TcpError that it throws ends this connection alone.
  using Heard = std::function<void(Socket& visitor, const std::string& line)>;
  static constexpr std::size_t kMostVisitors = 64;  // so that strangers cannot use up descriptors

  // A connection without a line goes after so long.
  explicit FirstLines(double line_seconds) : line_seconds_(line_seconds) {}

  // Takes a connection that waits at the listener, if there is one. With too many the oldest goes.
  // Returns the system's error if this process can take none, else 0.
  [[nodiscard]] int admit(const Socket& listener);

  // Adds an entry for each connection. Returns when the first of them has to go; nullopt: none has.
  std::optional<Deadline> begin_wait(std::vector<pollfd>& entries) const;
  // Hears the connections that are ready, oldest first, and drops the late ones. `entries` are
  // those of begin_wait() after poll(); since then none was admitted.
  void hear(std::span<const pollfd> entries, const Heard& heard);

 private:
  struct Visitor {
    Socket socket;
    Deadline deadline;
  };

  const double line_seconds_;
  std::list<Visitor> visitors_;  // oldest first
};

}  // namespace farstep::wan
