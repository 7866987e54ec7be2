// A TCP forwarder between a site and its coordinator whose connection can be cut, again and again.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "wan/transport/tcp.h"

namespace farstep {

class CuttableLink {
 public:
  // Forwards one connection at a time to 127.0.0.1:`port`.
  explicit CuttableLink(int port);
  ~CuttableLink();
  CuttableLink(const CuttableLink&) = delete;
  CuttableLink& operator=(const CuttableLink&) = delete;

  // tcp://127.0.0.1:PORT of the forwarder.
  std::string endpoint() const;
  // Closes the connection of the moment, if there is one; the next one may come at once.
  void cut();

 private:
  void run();

  const SocketAddress target_;
  Socket listener_;
  Socket wake_;
  std::atomic<bool> is_stopping_ = false;
  std::thread thread_;  // last: starts when all else is ready
};

}  // namespace farstep
