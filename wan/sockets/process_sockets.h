// Finds and tunes TCP sockets of this process, including those that a library opened and hides.
//
// Free functions are thread-safe; SocketCounter is not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wan/sockets/line_sample.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {

// A socket of this process. `remote` is empty if it is not connected.
struct ProcessSocket {
  int fd = -1;
  SocketAddress local;
  std::optional<SocketAddress> remote;
};

// Returns all of them. That takes some system calls for each descriptor of the process, so ask once
// for all sockets that are to be found.
std::vector<ProcessSocket> process_sockets();

// Makes the kernel drop packets to this socket from any address but `source_ip`. On a listening
// socket strangers then see a port that does not answer. Returns false where the kernel grants that
// to CAP_NET_ADMIN alone, as some do: the socket is as open as before, and the log warns of that
// once a process. Throws InternalError if the kernel refuses for another reason.
bool accept_only_from(int fd, const std::string& source_ip);

// Probes an idle connection every 30 s. Routers and firewalls then keep it, and a peer that
// vanished is noticed within two minutes.
void keep_alive(int fd);

// Lets the kernel break a connection after so long without the peer's acknowledgement of bytes that
// wait for it, or without room for them at the peer.
void break_if_unanswered(int fd, double seconds);

// Lets the kernel send small pieces of a connection at once.
void send_without_delay(int fd);

// Sets the kernel's congestion control ("bbr", "cubic") of a socket, if the kernel has it and
// allows it; an empty name changes nothing. Returns the one in use afterwards.
std::string pace_with(int fd, const std::string& congestion_control);

// Limits the rate of a socket; the kernel spreads its packets evenly. Infinity removes the limit.
// Throws InternalError.
void limit_pace(int fd, double bits_per_second);

// Returns the least round trip that the kernel measured on a connection.
double kernel_rtt_seconds(int fd);

// TCP payload as the kernel counts it, without headers.
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

// The kernel's figures of a connection since it opened.
struct SocketFacts {
  SocketBytes bytes;
  double rtt_seconds = 0;      // smoothed round trip
  double sending_seconds = 0;  // with unacknowledged bytes; resolution a few milliseconds
  LineSample line;             // now_seconds is not set
  // Whether the peer's machine owes an acknowledgement, and a number that changes with each.
  bool is_unanswered = false;
  uint64_t answers = 0;
};

// What carries bytes to a peer: one socket, or several one after the other.
class Line {
 public:
  virtual ~Line() = default;
  // Returns the kernel's figures now, or the last ones once there is no connection.
  virtual SocketFacts facts() = 0;
  // Do the same as the free functions.
  virtual void limit_pace(double bits_per_second) = 0;
  virtual void pace_with(const std::string& congestion_control) = 0;
  // From now on repeats what stays unacknowledged every two seconds at least, or again ever more
  // rarely. Only newer kernels can (6.15).
  virtual void hurry(bool is_hurried) = 0;
};

// Reads the figures of a connected socket that another object owns and may close. Its setters do
// nothing once the socket is closed.
class SocketCounter : public Line {
 public:
  explicit SocketCounter(int fd);
  SocketFacts facts() override;
  void limit_pace(double bits_per_second) override;
  void pace_with(const std::string& congestion_control) override;
  void hurry(bool is_hurried) override;
  // Ends the connection both ways: its owner reads the end of the stream, as if the peer had closed
  // it. Does nothing once the socket is closed.
  void shut_down();
  // Whether neither end has closed it, as far as this machine knows, and the peer does not fail to
  // acknowledge something.
  bool is_sound() const;
  int fd() const { return fd_; }

 private:
  bool is_open() const;

  int fd_;
  std::optional<SocketAddress> local_, remote_;
  SocketFacts facts_;
  uint32_t delivered_segments_ = 0;  // as the kernel counted them at the last call
};

// A line that outlives those who count on it: its figures are those since this was made.
class LineFromNow : public Line {
 public:
  explicit LineFromNow(std::shared_ptr<Line> line)
      : line_(std::move(line)), before_(line_->facts()) {}
  SocketFacts facts() override;
  void limit_pace(double bits_per_second) override { line_->limit_pace(bits_per_second); }
  void pace_with(const std::string& congestion_control) override {
    line_->pace_with(congestion_control);
  }
  void hurry(bool is_hurried) override { line_->hurry(is_hurried); }

 private:
  const std::shared_ptr<Line> line_;
  const SocketFacts before_;
};

}  // namespace farstep::wan
