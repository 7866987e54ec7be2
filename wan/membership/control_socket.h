// A ZeroMQ socket of the control plane that other threads can wake. All settings of such sockets
// (TCP keepalive, linger, limits) are made here.
//
// A connection begins with ZeroMQ's PLAIN handshake, in which both sides use a fixed name and
// password. They are no secret, and nothing is encrypted. The handshake only proves that a peer
// speaks this protocol: a coordinator drops all other connections before it reads a message.
//
// One thread at a time uses it, not necessarily the one that constructed it; any thread may call
// wake(). Only wait() blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "wan/protocol/deadlines.h"
#include "wan/sockets/waker.h"

namespace farstep::wan {

class ControlSocket {
 public:
  using Frames = std::vector<std::string>;
  enum class Role {
    kCoordinator,  // listens; the first frame of a message names the connection
    kSite,         // connects and retries; messages sent meanwhile are queued
  };

  // Returns the site whose connections come from an IP address; nullopt if those are strangers'.
  using Visitors = std::function<std::optional<std::string>(const std::string& ip)>;
  // A message, and the site whose connection brought it: known to a coordinator with `visitors`.
  struct Received {
    Frames frames;
    std::string site;
  };

  // A coordinator with `visitors` drops connections of strangers. Throws a ConfigError that names
  // the endpoint if it is malformed or cannot be listened on; a PeerError if one could listen later
  // (throw_cannot_listen()).
  ControlSocket(Role role, const std::string& endpoint, const Deadlines& deadlines,
                Visitors visitors = {});
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Returns the endpoint: for a coordinator with its real port, for a site as it was given.
  std::string endpoint() const;

  // Waits until a message may have come, wake() was called, a signal arrived, or `timeout_seconds`
  // have passed. A coordinator completes the handshakes of new connections in here.
  void wait(double timeout_seconds);
  // As wait(), for several sockets of a site.
  static void wait_for_any(const std::vector<std::unique_ptr<ControlSocket>>& sockets,
                           double timeout_seconds);
  // Ends the current or the next wait(). Any thread may call it at any time.
  void wake() { waker_.wake(); }
  // Returns the next message, or nullopt if none has come. A coordinator gets those of its
  // connections in turn, so one that sends without end does not hide the others.
  std::optional<Received> receive();
  // Of a coordinator: tells that the newest message is none of a site's. A connection with ten of
  // them is closed.
  void note_strange_message();
  // Of a coordinator: returns the connections that broke since the last call, by the name that
  // their messages had. A site's process may have ended, or it connects again.
  std::vector<std::string> take_broken();
  // Queues a message. Drops it if the queue is full or the receiver has gone.
  void send(const Frames& frames);

 private:
  void set_up(Role role, const Deadlines& deadlines);
  // Of a site: makes the connection anew when nothing comes on it.
  void watch_line();
  void answer_handshake();
  void watch_connections();
  void close_connection(int descriptor) const;

  const Visitors visitors_;
  const Waker waker_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  zmq::socket_t handshakes_;  // a coordinator's: ZeroMQ asks here whether a peer may connect
  zmq::socket_t changes_;     // a coordinator's: ZeroMQ tells here of connections that ended

  // Of a coordinator.
  struct Connection {
    std::string name;
    int strange_messages = 0;
  };
  std::map<int, Connection> connections_;  // by descriptor
  int newest_ = -1;                        // the descriptor over which the newest message came
};

}  // namespace farstep::wan
