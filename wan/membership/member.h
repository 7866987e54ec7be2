// A site's side of the control plane: it joins the run, meets the other sites at each sync, and
// knows at once when the run cannot go on.
//
// A thread of its own holds the connection, sends heartbeats and repeats what the coordinator has
// not answered, so that a connection that is cut and made again loses nothing. Methods may be
// called from any thread; those that wait end when a peer or the coordinator is lost. After a loss
// every one of them but leave() throws: PeerError that names the lost site (empty for the
// coordinator), or InternalError if the sites' weights differ.
#pragma once

#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/config/deadlines.h"
#include "wan/membership/control_socket.h"
#include "wan/membership/protocol.h"
#include "wan/membership/rendezvous.h"
#include "wan/transport/store.h"

namespace farstep {

class Member : public Store, public Rendezvous {
 public:
  // Is told of a lost peer or coordinator (`site` empty), or of differing weights (`site` empty).
  using LossListener = std::function<void(const std::string& site, const std::string& reason)>;

  // Speaks for `site` to the coordinator at `endpoint`, which need not be up yet. `deadlines` hold
  // until the welcome brings the run's own. `clock` must outlive it and be a real one. Throws
  // ConfigError if the endpoint is malformed.
  Member(const std::string& endpoint, std::string site, const Deadlines& deadlines, Clock& clock);
  // Without leave() before it, the other sites will count this one as lost.
  ~Member() override;

  // Registers and waits until all sites have; nothing if stop was requested meanwhile. Throws
  // ConfigError if the coordinator refuses, and PeerError if after join_seconds it was not reached
  // or other sites, which are named, have not come.
  std::optional<Welcome> join(const JoinRequest& request, std::stop_token stop = {});

  // A key is written once in a run; returns when the coordinator has it.
  void put(const std::string& key, const std::string& value) override;
  // Waits until the key exists; PeerError after join_seconds.
  std::string get(const std::string& key) override;

  std::optional<Go> arrive(const SyncId& sync, const Contribution& contribution,
                           const std::string& theta_hash, std::stop_token stop) override;
  void vote(const SyncId& sync, const std::string& theta_hash) override;

  // Whether the run cannot go on, and throws then what the waiting methods would; never waits.
  bool has_failed() const;
  void throw_if_failed() const;
  // What the next heartbeats say.
  void set_activity(int64_t round, int64_t step, const std::string& text);
  // Tells the coordinator the figures of a round; waits for nothing.
  void report(const MetricsMessage& metrics);
  // Says goodbye and waits for the answer, leave_seconds at most. The last call but the destructor:
  // any other throws afterwards. Never throws on account of a loss; logs if nobody answered.
  void leave(Outcome outcome, const std::string& message);

  // What to add to this machine's unix time to get the coordinator's, to about half the round trip.
  double clock_offset_seconds() const;

  // `listener` is called once, from the member's thread, when the run cannot go on, also if that
  // was known before; it must return soon and not call the member. Setting another one, or an empty
  // one, waits for a call that runs.
  void on_peer_lost(LossListener listener);

 private:
  struct Request {
    SiteMessage message;
    bool is_sent = false;
    std::optional<CoordinatorMessage> answer;
  };
  struct Failure {
    ErrorKind kind;
    std::string site;
    std::string message;
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Sends, repeats and waits for the answer; nothing if the deadline (on the clock) passed or stop
  // was requested. Throws the failure if there is one, unless `despite_failure`.
  std::optional<CoordinatorMessage> ask(SiteMessage message, double deadline_seconds,
                                        std::stop_token stop = {}, bool despite_failure = false);
  void throw_failure() const;  // if there is one; mutex_ is held
  // Waits under `lock` for `condition`, the deadline or stop, whichever comes first.
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, double deadline_seconds, std::stop_token stop,
            Condition condition);
  int64_t generation() const;
  Deadlines deadlines() const;
  // What join() waits for, in words.
  std::string obstacle_to_joining() const;

  void run();
  void send_due_messages();
  void handle(const CoordinatorMessage& message);
  // What a message means beside answering a request; mutex_ is held.
  void on(const Welcome& message);
  void on(const WaitingMessage& message);
  void on(const HeartbeatAckMessage& message);
  void on(const PeerLostMessage& message);
  void on(const StopMessage& message);
  void on(const UnknownSiteMessage& message);
  void on(const ErrorMessage& message);
  template <typename Message>
  void on(const Message&) {}
  bool is_coordinator_silent() const;  // mutex_ is held
  void check_coordinator();
  // Keeps the first failure and ends all waits; mutex_ is held.
  void fail(ErrorKind kind, const std::string& site, const std::string& message);
  void tell_listener();

  const std::string endpoint_;
  const std::string site_;
  Clock& clock_;
  ControlSocket socket_;          // the thread's, but for wake()
  double next_beat_seconds_ = 0;  // the thread's

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Request*> requests_;  // this and the following: guarded by mutex_
  std::vector<SiteMessage> reports_;
  Deadlines deadlines_;  // the run's own from the welcome on
  HeartbeatMessage activity_;
  std::optional<Welcome> welcome_;
  std::vector<std::string> missing_;  // who has not registered, as last heard
  std::optional<Failure> failure_;
  double heard_seconds_ = -kNever;  // when the coordinator last said anything
  double clock_offset_seconds_ = 0;
  double best_round_trip_seconds_ = kNever;
  bool is_leaving_ = false;
  bool is_stopping_ = false;

  std::mutex listener_mutex_;
  LossListener listener_;  // guarded by listener_mutex_
  std::thread thread_;     // last: starts when all else is ready
};

}  // namespace farstep
