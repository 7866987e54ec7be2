// The coordinator: a thread that listens for sites and lets a Roster decide. It holds no tensors
// and writes no files; it can live in a site's process or alone.
//
// All methods may be called from any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/base/clock.h"
#include "trainer/config/deadlines.h"
#include "trainer/config/json_fields.h"
#include "wan/membership/control_socket.h"
#include "wan/membership/roster.h"

namespace farstep {

class Coordinator {
 public:
  // Listens at `endpoint` (tcp://ADDRESS:PORT; port * or 0 takes a free one) and serves the run
  // `run`, which has every default written out. `clock` must outlive it. Throws ConfigError if the
  // endpoint cannot be listened on or the run is not valid.
  Coordinator(const std::string& endpoint, Json run, const Deadlines& deadlines, Clock& clock);
  // Stops listening; sites that are still in the run lose it. Takes leave_seconds at most.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Where it listens, with the real port.
  const std::string& endpoint() const { return endpoint_; }

  // Waits until all sites have taken part and left, or are lost; false after `timeout_seconds`.
  // Throws InternalError if the coordinator's own thread failed.
  bool wait_until_over(double timeout_seconds);
  // Why the run ended early (a lost site, differing weights); empty if it did not.
  std::string failure() const;

 private:
  void run();
  void handle(const ControlSocket::Frames& frames);
  void deliver(const std::vector<Outgoing>& messages);
  void publish();

  Clock& clock_;
  const double tick_seconds_;
  Roster roster_;         // the thread's
  ControlSocket socket_;  // the thread's, but for wake()
  const std::string endpoint_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // this and the following: guarded by mutex_
  bool has_begun_ = false;
  bool is_over_ = false;
  std::string failure_, summary_;
  std::string defect_;  // what made the thread fail
  std::thread thread_;  // last: starts when all else is ready
};

}  // namespace farstep
