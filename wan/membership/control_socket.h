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
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "wan/protocol/deadlines.h"
#include "wan/sockets/host_addresses.h"
#include "wan/sockets/waker.h"

namespace farstep::wan {

class ControlSocket {
 public:
  using Frames = std::vector<std::string>;
  enum class Role {
    kCoordinator,  // listens; the first frame of a message names the connection
    // Connects and retries, at all addresses of the endpoint's host in turn. Messages sent
    // meanwhile are queued, or dropped as long as no address is known or when the next one is
    // tried.
    kSite,
  };

  // Returns the site whose connections come from an IP address; nullopt if those are strangers'.
  using Visitors = std::function<std::optional<std::string>(const std::string& ip)>;
  // A message, and the site whose connection brought it: known to a coordinator with `visitors`.
  struct Received {
    Frames frames;
    std::string site;
  };

  // `endpoint` is tcp://HOST:PORT. A coordinator listens at all of listening_addresses(); with
  // `visitors` it drops connections of strangers. Throws a ConfigError that names the endpoint if
  // it is malformed or cannot be listened on; a PeerError if one could listen later
  // (throw_cannot_listen()).
  ControlSocket(Role role, const std::string& endpoint, const Deadlines& deadlines,
                Visitors visitors = {});
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Returns the endpoint: for a coordinator the first address with its real port, for a site as it
  // was given.
  const std::string& endpoint() const { return endpoint_; }
  // Of a site: returns why the connection cannot be made, as far as that is known. Any thread may
  // call it.
  std::string obstacle() const { return addresses_ ? addresses_->failure() : ""; }

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
  // Of a site: whether its newest connection came to its handshake, and has not ended.
  bool is_connected() const { return has_greeted_; }
  // Of a site: returns whether the connection has ended since the last call, or another address is
  // tried. What was sent before may be lost; messages sent from now on travel over the next one.
  bool take_loss() { return std::exchange(has_lost_, false); }
  // Queues a message. Drops it if the queue is full or the receiver has gone.
  void send(const Frames& frames);

 private:
  void set_up(Role role, const Deadlines& deadlines);
  // Of a coordinator.
  void listen(const std::string& field, const std::vector<SocketAddress>& addresses);
  // Of a site: takes note of attempts that have failed, and connects to the address that is next.
  void follow_addresses(double patience_seconds);
  void note_attempts();
  // What wait() does: before it waits, how long it may, and after that.
  void append_items(std::vector<zmq_pollitem_t>& items);
  double patience_seconds(double timeout_seconds) const;
  void follow_wait();
  void answer_handshake();
  // Asks ZeroMQ to tell of these events, which next_event() returns in their order.
  void watch(int events);
  struct Event {
    int kind;
    int descriptor;  // or another number, by kind
    std::string endpoint;
  };
  std::optional<Event> next_event();
  void close_connection(int descriptor) const;

  const Visitors visitors_;
  const Waker waker_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  zmq::socket_t handshakes_;  // a coordinator's: ZeroMQ asks here whether a peer may connect
  zmq::socket_t changes_;     // where ZeroMQ tells of connections and attempts that ended
  std::string endpoint_;
  int port_ = 0;  // of a coordinator

  // Of a site.
  std::unique_ptr<HostAddresses> addresses_;
  std::optional<SocketAddress> dialed_;  // the address to which ZeroMQ connects
  bool has_greeted_ = false;             // the newest connection came to its handshake
  bool awaits_retry_ = false;            // that connection has ended, and no attempt has failed yet
  bool has_lost_ = false;                // for take_loss()

  // Of a coordinator.
  struct Connection {
    std::string name;
    int strange_messages = 0;
  };
  std::map<int, Connection> connections_;  // by descriptor
  int newest_ = -1;                        // the descriptor over which the newest message came
};

}  // namespace farstep::wan
