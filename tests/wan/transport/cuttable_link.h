// A TCP forwarder whose connections can be cut, again and again, or held up as by a dead line.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "wan/sockets/tcp.h"
#include "wan/sockets/waker.h"

namespace farstep::wan {

class CuttableLink {
 public:
  // Forwards all connections to 127.0.0.1:`port`.
  explicit CuttableLink(int port);
  ~CuttableLink();
  CuttableLink(const CuttableLink&) = delete;
  CuttableLink& operator=(const CuttableLink&) = delete;

  // Where the forwarder listens, also as tcp://127.0.0.1:PORT.
  SocketAddress address() const { return *SocketAddress::local_of(listener_.fd()); }
  std::string endpoint() const { return "tcp://" + address().text(); }
  // Closes all connections of the moment; the next ones may come at once.
  void cut();
  // As long as the link is held, no byte moves and no connection is taken.
  void hold(bool is_held);
  // From now on the visitors' bytes of all connections together travel at this rate.
  void slow_down(int64_t bytes_per_second);
  // Returns how many bytes of visitors it has forwarded.
  int64_t forwarded_bytes() const { return forwarded_bytes_; }

 private:
  struct Pair {
    Socket near, far;
  };

  void run();
  void take();

  const SocketAddress target_;
  Socket listener_;
  Waker waker_;
  std::list<Pair> pairs_;  // used by the thread only
  std::atomic<bool> is_stopping_ = false, is_cut_ = false, is_held_ = false;
  std::atomic<int64_t> bytes_per_second_ = 0;  // 0: without a limit
  std::atomic<int64_t> forwarded_bytes_ = 0;
  std::thread thread_;  // last: starts when all else is ready
};

}  // namespace farstep::wan
