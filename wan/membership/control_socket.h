// A ZeroMQ socket of the control plane, with the means to wake the thread that waits on it. This is
// the one place where such sockets are set up: TCP keepalive, linger, limits.
//
// One thread uses it at a time (the maker may hand it to another); only wake() may be called from
// any thread. Nothing here blocks but wait().
#pragma once

#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "trainer/config/deadlines.h"

namespace farstep {

class ControlSocket {
 public:
  using Frames = std::vector<std::string>;
  enum class Role {
    kCoordinator,  // listens; the first frame of every message is the sender's or receiver's name
    kSite,         // connects, and goes on trying; what it sends meanwhile is kept
  };

  // Throws ConfigError that names the endpoint if it is malformed or cannot be listened on.
  ControlSocket(Role role, const std::string& endpoint, const Deadlines& deadlines);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Where a coordinator listens, with its real port; where a site connects to.
  std::string endpoint() const;

  // Returns when a message may be there, after a wake(), on a signal, or after `timeout_seconds`.
  void wait(double timeout_seconds);
  // Ends the present wait() or the next one; callable from any thread and any time.
  void wake();
  // The next message, if one has come.
  std::optional<Frames> receive();
  // Queues a message; drops it if the queue is full or the receiver is gone.
  void send(const Frames& frames);

 private:
  void set_up(Role role, const Deadlines& deadlines);

  int wake_event_;
  zmq::context_t context_;
  zmq::socket_t socket_;
};

}  // namespace farstep
