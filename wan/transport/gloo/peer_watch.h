// Notices the end of a connection with a peer, also while no message is waited for, and takes the
// peer's farewell. A peer that gives up sends the rank of the site that it lost, so that all sites
// name the same one.
//
// A watch is for one generation, as ranks are: a farewell of another one does not reach it. It must
// not end before its connection: what the peer sent in its generation may still come.
//
// Thread-safe after start().
#pragma once

#include <gloo/transport/context.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace farstep::wan {

// The ranks in Gloo's contexts. Each has this site and one peer, so that it knows nothing of a
// view, in which both may have other ranks.
inline constexpr int kSelf = 0, kPeer = 1, kBoth = 2;

class PeerWatch {
 public:
  // Receives why the connection has ended, on a thread of the watch.
  using Ended = std::function<void(const std::string& reason)>;

  // Posts a receive from the peer of `context`. Throws what Gloo throws.
  PeerWatch(gloo::transport::Context& context, uint64_t generation);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Calls `ended` when the connection ends, unless a wait of another thread has timed out: that
  // thread knows the better reason.
  void start(Ended ended);
  // Ask the thread to end, and wait for it. Both must be called after start(), before the context
  // is closed: to the watch a closing connection is a lost peer.
  void request_stop();
  void join();

  // Returns the rank that the peer has lost, -1 if it named none. If another thread has noticed the
  // end first, waits a moment for the watch.
  int64_t lost_by_peer();
  // Sends the peer the rank of a lost site, as far as the socket takes it now. A peer that misses
  // it sees the connection close.
  void say_farewell(int64_t lost);

 private:
  void watch(const Ended& ended);
  void finish(int64_t lost);

  const uint64_t slot_;
  int64_t received_ = -1, sent_ = -1;  // the memory of the two buffers
  const std::unique_ptr<gloo::transport::UnboundBuffer> farewell_, receive_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool is_watching_ = false;  // guarded by mutex_, as is the next
  int64_t lost_by_peer_ = -1;
  std::thread thread_;
};

}  // namespace farstep::wan
