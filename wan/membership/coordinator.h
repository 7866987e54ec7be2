// The coordinator: a thread that receives the sites' messages and applies a Roster to them. It
// holds no tensors. It runs in a site's process or in one of its own.
//
// With a journal it goes on with its run after a crash: what an answer depends on is on disk before
// the answer leaves. The run goes on if any of its sites' processes comes back. If none does within
// ten heartbeats, and a new one registers, a new run begins. Without the journal it goes on by what
// the members know, if they come back. So does a stand-by when the coordinator is lost, and one
// that has been replaced is a stand-by from then on.
//
// All methods are thread-safe.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/base/clock.h"
#include "wan/admission/served_run.h"
#include "wan/membership/control_socket.h"
#include "wan/membership/journal.h"
#include "wan/membership/records.h"
#include "wan/protocol/deadlines.h"
#include "wan/roster/roster.h"
#include "wan/sockets/stranger_log.h"

namespace farstep::wan {

// The sites that visit a coordinator behind a secure port.
struct CoordinatorVisitors {
  ControlSocket::Visitors site_at;  // by the address of a connection; null: whoever comes is served
  // Whether a site's machine has closed its line to this one, and the site has made no other. The
  // coordinator's own connections do not show it: they wait for the line to come back.
  std::function<bool(const std::string& site)> has_closed = {};
};

class Coordinator {
 public:
  // Listens at `endpoint` (tcp://HOST:PORT; port * or 0 takes a free one) and serves `run`.
  // `journal` is the file of its state; empty: only the members know it. `clock` must outlive
  // the coordinator. With `visitors.site_at` it serves no stranger, and each site under its own
  // name only. `records` is the folder for copies of the sites' records; empty: none are kept.
  // Throws ConfigError or PeerError if it cannot listen there (ControlSocket), and what Journal
  // throws.
  Coordinator(const std::string& endpoint, ServedRun run, const Deadlines& deadlines, Clock& clock,
              const std::filesystem::path& journal = {}, CoordinatorVisitors visitors = {},
              std::filesystem::path records = {});
  // Stops listening. Sites still in the run lose it. Takes at most leave_seconds.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Returns the endpoint with its real port.
  const std::string& endpoint() const { return endpoint_; }

  // Waits until all sites have taken part and left, or are lost. Returns false after
  // `timeout_seconds`. Throws InternalError if the coordinator's thread failed.
  bool wait_until_over(double timeout_seconds);
  // Whether the run that it serves has begun.
  bool serves_run() const;
  // Ends the run for all sites that are in it still, since nobody will restart this coordinator.
  void end_run(const std::string& reason);
  // Sends all sites to the stand-bys, since this coordinator ends.
  void hand_over(const std::string& reason);
  // Returns why the run ended early (a lost site, differing weights); empty if it did not.
  std::string failure() const;

 private:
  // Begins to serve; the first write shows that the journal can be written.
  std::thread begin();
  void run();
  // Receives what has come, for a limited time, and answers it. Then looks for what follows from
  // the time alone.
  void serve();
  // Tells the roster of connections that broke.
  void note_broken();
  void handle(const ControlSocket::Received& received, std::vector<Outgoing>& answers);
  // Serves whatever run its sites come with, or begins one.
  void forget_run(const std::string& reason);
  // Writes the journal, then sends.
  void answer(const std::vector<Outgoing>& messages);
  void finish();
  void deliver(std::vector<Outgoing> messages);
  void publish();

  Clock& clock_;
  const ServedRun run_;
  const Deadlines deadlines_;
  const double tick_seconds_;
  const bool knows_visitors_;
  const std::function<bool(const std::string& site)> has_closed_;
  StrangerLog strangers_;  // used by the thread only, as the next four
  RecordsFolder records_;
  const std::unique_ptr<KeptJournal> journal_;  // null without one
  std::unique_ptr<Roster> roster_;
  ControlSocket socket_;  // but wake() is called by others too
  const std::string endpoint_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_, as all members below
  // Of end_run() and hand_over(), until the thread has told them.
  std::string end_reason_, hand_over_reason_;
  bool has_begun_ = false;
  bool is_over_ = false;
  std::string failure_, change_, pause_, summary_;
  std::string defect_;  // the exception that ended the thread
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace farstep::wan
