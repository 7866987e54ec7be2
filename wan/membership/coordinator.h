// The coordinator: a thread that receives the sites' messages and applies a Roster to them. It
// holds no tensors and writes no files. It runs in a site's process or in one of its own.
//
// All methods are thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/base/clock.h"
#include "wan/membership/control_socket.h"
#include "wan/membership/deadlines.h"
#include "wan/membership/roster.h"
#include "wan/membership/served_run.h"
#include "wan/membership/stranger_log.h"

namespace farstep {

class Coordinator {
 public:
  // Listens at `endpoint` (tcp://ADDRESS:PORT; port * or 0 takes a free one) and serves `run`.
  // `clock` must outlive the coordinator. Throws ConfigError or
  // PeerError if it cannot listen there (ControlSocket).
  Coordinator(const std::string& endpoint, ServedRun run, const Deadlines& deadlines, Clock& clock);
  // Stops listening. Sites still in the run lose it. Takes at most leave_seconds.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Returns the endpoint with its real port.
  const std::string& endpoint() const { return endpoint_; }

  // Waits until all sites have taken part and left, or are lost. Returns false after
  // `timeout_seconds`. Throws InternalError if the coordinator's thread failed.
  bool wait_until_over(double timeout_seconds);
  // Returns why the run ended early (a lost site, differing weights); empty if it did not.
  std::string failure() const;

 private:
  void run();
  void handle(const ControlSocket::Frames& frames);
  void deliver(const std::vector<Outgoing>& messages);
  void publish();

  Clock& clock_;
  const double tick_seconds_;
  StrangerLog strangers_;  // used by the thread only, as the next two
  Roster roster_;
  ControlSocket socket_;  // but wake() is called by others too
  const std::string endpoint_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_, as all members below
  bool has_begun_ = false;
  bool is_over_ = false;
  std::string failure_, change_, summary_;
  std::string defect_;  // the exception that ended the thread
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace farstep
