#include "wan/sockets/first_lines.h"

#include <sys/socket.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "trainer/base/error.h"

namespace farstep::wan {

int FirstLines::admit(const Socket& listener) {
  Socket visitor(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (visitor.fd() < 0) {
    const bool has_gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    return has_gone ? 0 : errno;
  }
  visitors_.push_back({std::move(visitor), deadline_after(line_seconds_)});
  if (visitors_.size() > kMostVisitors) visitors_.pop_front();
  return 0;
}

std::optional<Deadline> FirstLines::begin_wait(std::vector<pollfd>& entries) const {
  for (const auto& visitor : visitors_) entries.push_back({visitor.socket.fd(), POLLIN, 0});
  if (visitors_.empty()) return std::nullopt;
  return visitors_.front().deadline;
}

void FirstLines::hear(std::span<const pollfd> entries, const Heard& heard) {
  FARSTEP_CHECK(entries.size() == visitors_.size(), "{} entries of {} visitors", entries.size(),
                visitors_.size());
  auto entry = entries.begin();
  for (auto visitor = visitors_.begin(); visitor != visitors_.end(); ++entry) {
    const bool is_ready = entry->revents != 0;
    if (is_ready) {
      try {
        // A line arrives in one piece.
        const auto line = receive_line(visitor->socket, deadline_after(0));
        heard(visitor->socket, line);
      } catch (const TcpError&) {
        // A stranger, or one that has gone and may come again.
      }
    }
    const bool is_over = is_ready || milliseconds_until(visitor->deadline) == 0;
    visitor = is_over ? visitors_.erase(visitor) : std::next(visitor);
  }
}

}  // namespace farstep::wan
