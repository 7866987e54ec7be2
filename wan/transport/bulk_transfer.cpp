// A state of gigabytes crosses a line that may break. TCP cannot resume, so the two ends agree
// after each new connection how many bytes the receiver has, and go on there.
#include "wan/transport/bulk_transfer.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"
#include "wan/sockets/local_address.h"
#include "wan/sockets/process_sockets.h"
#include "wan/sockets/random_token.h"
#include "wan/sockets/waker.h"

namespace farstep::wan {

namespace {

// Lines come at once from a sender that has connected; a stranger is dropped after so long.
constexpr double kLineSeconds = 5;
// Long enough to spare a receiver that restarts, short beside the shortest stall deadline.
constexpr double kRetrySeconds = 0.2;
// The kernel repeats a first packet that is lost after 1 s.
constexpr double kConnectSeconds = 2;
// Of the stall deadline: after a cut that no packet tells of, the rest is time for other
// connections.
constexpr double kSilentShare = 0.25;
constexpr std::string_view kGreeting = "farstep-bulk ";

// A descriptor that becomes readable when a stop is requested.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop) : callback_(stop, [this] { waker_.wake(); }) {}
  int fd() const { return waker_.fd(); }

 private:
  const Waker waker_;
  const std::stop_callback<std::function<void()>> callback_;
};

enum class Wait { kReady, kStopped, kLate };

// Waits until `fd` is ready for `events`; without an fd it waits for the stop or the deadline.
Wait wait_for(int fd, short events, int stop_fd, Deadline deadline) {
  while (true) {
    // A negative fd is ignored by poll(), which makes this a wait for the stop.
    pollfd entries[] = {{stop_fd, POLLIN, 0}, {fd, events, 0}};
    if (poll(entries, 2, milliseconds_until(deadline)) < 0) continue;
    if (entries[0].revents != 0) return Wait::kStopped;
    if (entries[1].revents != 0) return Wait::kReady;
    if (milliseconds_until(deadline) == 0) return Wait::kLate;
  }
}

std::optional<uint64_t> number_of(const std::string& line) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || end != line.data() + line.size()) return std::nullopt;
  return number;
}

uint64_t total_bytes(std::span<const std::span<const std::byte>> parts) {
  uint64_t total = 0;
  for (const auto& part : parts) total += part.size();
  return total;
}

// Returns the bytes from `offset` to the end of their part.
std::span<const std::byte> bytes_at(std::span<const std::span<const std::byte>> parts,
                                    uint64_t offset) {
  for (const auto& part : parts) {
    if (offset < part.size()) return part.subspan(offset);
    offset -= part.size();
  }
  return {};
}

// Returns a connection to the receiver; nullopt if a stop was requested.
std::optional<Socket> connect_to(const SocketAddress& target, int stop_fd, Deadline deadline) {
  auto socket = begin_connect(target);
  const auto waited = wait_for(socket.fd(), POLLOUT, stop_fd, deadline);
  if (waited == Wait::kStopped) return std::nullopt;
  if (waited == Wait::kLate) throw TcpError("timed out");
  finish_connect(socket);
  return socket;
}

// Sends over one connection what the receiver does not have. Returns whether it confirms the end;
// nullopt if a stop was requested. Each byte that leaves moves the deadline `give_up`.
std::optional<bool> send_rest(const Socket& socket, const BulkAddress& address,
                              std::span<const std::span<const std::byte>> parts,
                              double stall_seconds, int stop_fd, Deadline& give_up) {
  send_line(socket, std::string(kGreeting) + address.token, deadline_after(kLineSeconds));
  const auto answered = wait_for(socket.fd(), POLLIN, stop_fd, deadline_after(kLineSeconds));
  if (answered == Wait::kStopped) return std::nullopt;
  if (answered == Wait::kLate) throw TcpError("the receiver does not answer");
  // A line arrives in one piece.
  const auto offset = number_of(receive_line(socket, deadline_after(0)));
  const uint64_t total = total_bytes(parts);
  if (!offset || *offset > total) throw TcpError("the answer is not that of a receiver");
  for (uint64_t sent = *offset; sent < total;) {
    const auto waited = wait_for(socket.fd(), POLLOUT, stop_fd, give_up);
    if (waited == Wait::kStopped) return std::nullopt;
    if (waited == Wait::kLate) throw TcpError("nothing could be sent");
    // Found anew each time: the parts are few.
    const auto rest = bytes_at(parts, sent);
    const auto count = send(socket.fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) throw TcpError(std::strerror(errno), errno);
    sent += static_cast<uint64_t>(count);
    give_up = deadline_after(stall_seconds);
  }
  // The kernel has the last bytes, but only the receiver knows that it has them too.
  if (wait_for(socket.fd(), POLLIN, stop_fd, give_up) == Wait::kStopped) return std::nullopt;
  return receive_line(socket, deadline_after(0)) == "done";
}

}  // namespace

BulkReceiver::BulkReceiver(const std::string& ip, int port, double connect_seconds,
                           double stall_seconds)
    : connect_seconds_(connect_seconds), stall_seconds_(stall_seconds), visitors_(kLineSeconds) {
  const SocketAddress wanted(ip, port);
  try {
    listener_ = listen_tcp(wanted);
  } catch (const TcpError& error) {
    throw_cannot_listen("for the run's state", wanted, error.error());
  }
  address_ = {.ip = ip,
              .port = SocketAddress::local_of(listener_.fd()).value_or(wanted).port(),
              .token = random_token()};
}

// The first byte has a limit of its own, as the donor may still have to connect. Each byte then
// moves the deadline: only a standstill ends the wait. Strangers may come all the time, so the
// deadline is looked at in every turn.
bool BulkReceiver::receive(std::span<std::byte> bytes, const std::stop_token& stop) {
  const StopSignal signal(stop);
  auto deadline = deadline_after(patience_seconds());
  while (!bytes.empty()) {
    // poll() ignores a sender that is not there, whose descriptor is negative.
    std::vector<pollfd> entries{
        {signal.fd(), POLLIN, 0}, {sender_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
    const auto late = visitors_.begin_wait(entries);
    const auto wake = late ? std::min(*late, deadline) : deadline;
    if (poll(entries.data(), entries.size(), milliseconds_until(wake)) < 0) continue;
    if (entries[0].revents != 0) return false;
    if (entries[1].revents != 0) {
      if (const auto count = take_bytes(bytes); count > 0) {
        bytes = bytes.subspan(count);
        deadline = deadline_after(stall_seconds_);
      }
    }
    visitors_.hear(std::span(entries).subspan(3),
                   [this](Socket& visitor, const std::string& line) { greet(visitor, line); });
    if (entries[2].revents != 0) admit();
    if (!bytes.empty() && milliseconds_until(deadline) == 0) {
      throw PeerError("", fmt::format("no byte of the run's state came to {} for {} s",
                                      own_address(), patience_seconds()));
    }
  }
  return true;
}

// A connection that ends is forgotten; the sender makes another.
std::size_t BulkReceiver::take_bytes(std::span<std::byte> bytes) {
  const auto count = recv(sender_.fd(), bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (count <= 0) {
    sender_ = Socket();
    return 0;
  }
  received_ += static_cast<uint64_t>(count);
  return static_cast<std::size_t>(count);
}

void BulkReceiver::admit() {
  if (const int error = visitors_.admit(listener_); error != 0) {
    throw PeerError("", fmt::format("a connection at {} cannot be taken: {}", own_address(),
                                    std::strerror(error)));
  }
}

// A sender connects anew when its line has failed, of which this side may have heard nothing. What
// the older connection still brings comes once more.
void BulkReceiver::greet(Socket& visitor, const std::string& line) {
  if (line != std::string(kGreeting) + address_.token) return;
  send_line(visitor, fmt::format("{}", received_), deadline_after(0));
  sender_ = std::move(visitor);
}

void BulkReceiver::finish() {
  try {
    send_line(sender_, "done", deadline_after(kLineSeconds));
  } catch (const TcpError&) {
    // The sender logs that it does not know; the bytes are here.
  }
}

bool send_bulk(const BulkAddress& address, std::span<const std::span<const std::byte>> parts,
               const BulkLimits& limits, const std::stop_token& stop) {
  const StopSignal signal(stop);
  const SocketAddress target(address.ip, address.port);
  auto give_up = deadline_after(limits.stall_seconds);
  while (true) {
    std::string obstacle;
    try {
      const auto socket =
          connect_to(target, signal.fd(), std::min(give_up, deadline_after(kConnectSeconds)));
      if (!socket) return false;
      break_if_unanswered(socket->fd(), kSilentShare * limits.stall_seconds);
      // Below the line's rate, so that it keeps room for the run's own messages.
      if (limits.bits_per_second) limit_pace(socket->fd(), *limits.bits_per_second);
      const auto is_done =
          send_rest(*socket, address, parts, limits.stall_seconds, signal.fd(), give_up);
      if (!is_done) return false;
      if (*is_done) return true;
      obstacle = "the receiver did not confirm the end";
    } catch (const TcpError& error) {
      obstacle = error.what();
    }
    if (milliseconds_until(give_up) == 0) {
      throw PeerError("", fmt::format("{}: nothing was sent for {} s: {}", target.text(),
                                      limits.stall_seconds, obstacle));
    }
    if (wait_for(-1, 0, signal.fd(), std::min(give_up, deadline_after(kRetrySeconds))) ==
        Wait::kStopped) {
      return false;
    }
  }
}

}  // namespace farstep::wan
