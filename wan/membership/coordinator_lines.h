// A site's connections to the coordinators of its run, one to each, in the order of the run's list.
//
// One thread uses it; any thread may call wake(), name() and obstacle().
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wan/membership/control_socket.h"
#include "wan/protocol/protocol.h"
#include "wan/protocol/repetition.h"

namespace farstep::wan {

// Where a site reaches a coordinator, which need not run yet.
struct CoordinatorEndpoint {
  std::string endpoint;  // tcp://HOST:PORT
  std::string shown;     // messages name this endpoint instead, unless it is empty
};

class CoordinatorLines {
 public:
  struct Received {
    std::size_t line;
    CoordinatorMessage message;
  };

  // `endpoints` has at least one. Throws ConfigError if one is malformed.
  CoordinatorLines(const std::vector<CoordinatorEndpoint>& endpoints, const Deadlines& deadlines);

  std::size_t size() const { return sockets_.size(); }
  // Returns the coordinator's endpoint, for messages to the user.
  const std::string& name(std::size_t line) const { return names_[line]; }
  // Returns why there is no connection to it, as far as that is known; empty if it is not.
  std::string obstacle(std::size_t line) const { return sockets_[line]->obstacle(); }

  // As ControlSocket's, for all lines together.
  void wait(double timeout_seconds);
  void wake() { sockets_.front()->wake(); }
  // Returns the next message of any line, or nullopt if none has come. Throws DataError or
  // ConfigError that names the coordinator if it is no message of this version.
  std::optional<Received> receive();
  // Returns whether what was sent may be lost, as the connection has ended since the last call.
  bool take_loss(std::size_t line);
  // The next two return the bytes of the message.
  std::size_t send(std::size_t line, const SiteMessage& message);
  std::size_t send_to_all(const SiteMessage& message);
  // Sends a registration to all lines, or to all but one. Unless it is new, it goes only where one
  // is due, as each is answered. Without a connection the last one waits still.
  void register_at_all(const RegisterMessage& message, bool is_new, double now_seconds,
                       double heartbeat_seconds, std::optional<std::size_t> but = {});

 private:
  std::vector<std::unique_ptr<ControlSocket>> sockets_;
  std::vector<std::string> names_;
  std::vector<Repetition> registrations_;  // by line
};

}  // namespace farstep::wan
