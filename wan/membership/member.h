// A site's side of the control plane. It joins the run, meets the other sites at each sync, and
// reports at once when the run cannot continue.
//
// A thread of its own owns the connection. It sends heartbeats and repeats unanswered requests, so
// a connection that breaks and is opened again loses nothing. A slow line has one copy of a request
// at a time: the next one is sent when its connection has ended, or a heartbeat is answered that
// was sent after it (Repetition). A registration, a sign of life too, is repeated as it is
// answered. The thread touches no file, and no file is touched under the mutex: heartbeats and
// set_activity() go on while a disk hangs. A second thread reads pieces of the site's records and
// gives them to the first, which sends them. It also writes the term; messages carry a term only
// from then on, so a restart forgets no promise.
//
// While the coordinator is silent, the site goes on, and waits where it needs an answer. A
// coordinator that is restarted goes on with the run; this member registers again if it is not
// known there. If the run has stand-by coordinators, it registers there too after ten heartbeats of
// silence, or of a pause. One of them serves the run when enough sites come to it. Only the
// coordinator of the newest term is heard. After coordinator_lost_after_seconds without one the run
// ends.
//
// When a peer is lost, the run goes on among the others in a new generation. If fewer than its
// min_sites are left, it pauses until enough are there again.
//
// All methods are thread-safe. Methods that wait end when the coordinator is lost or the run ends.
// From then on every method but leave() throws: PeerError that names the lost site (empty for the
// coordinator), or InternalError if the sites' weights differ.
#pragma once

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/base/worker.h"
#include "wan/membership/coordinator_lines.h"
#include "wan/membership/records.h"
#include "wan/protocol/deadlines.h"
#include "wan/protocol/protocol.h"
#include "wan/protocol/rendezvous.h"
#include "wan/protocol/repetition.h"
#include "wan/transport/store.h"

namespace farstep::wan {

class Member : public Store, public Rendezvous {
 public:
  // Receives a lost peer's name and the reason. `site` is empty for the coordinator and for
  // differing weights.
  using LossListener = std::function<void(const std::string& site, const std::string& reason)>;

  // Represents `site` at the run's coordinators. `deadlines` apply until the welcome brings the
  // run's own. `clock` must outlive this object and run in real time. `term_file` keeps the newest
  // term beyond this process; empty: nothing does. Throws ConfigError if an endpoint is malformed,
  // and DataError if the file is.
  Member(const std::vector<CoordinatorEndpoint>& coordinators, std::string site,
         const Deadlines& deadlines, Clock& clock, std::filesystem::path term_file = {});
  // At the only coordinator of the run.
  Member(const std::string& endpoint, std::string site, const Deadlines& deadlines, Clock& clock,
         std::filesystem::path term_file = {});
  // Without a leave() before, the other sites count this one as lost.
  ~Member() override;

  // Registers and waits until all sites have registered. Returns nullopt if a stop was requested.
  // Throws ConfigError if the coordinator refuses, and PeerError if a later try may succeed with
  // nothing changed at the site (RefusedMessage::is_temporary). After join_seconds it throws
  // NotJoinedError: the coordinator was not reached, or it names the sites that have not come.
  std::optional<Welcome> join(const JoinRequest& request, std::stop_token stop = {});

  // Returns when the coordinator has the value. A key is written once in a run.
  void put(const std::string& key, const std::string& value) override;
  // Waits until the key exists. Throws PeerError after join_seconds (unless the run pauses), or if
  // a member of the newest sync (of the first generation before any) is lost.
  std::string get(const std::string& key) override;
  // Sends all requests at once, so it takes one round trip if the values are there.
  std::vector<std::string> put_and_get(const std::string& key, const std::string& value,
                                       const std::vector<std::string>& wanted) override;

  std::optional<Go> arrive(const SyncId& sync, const Contribution& contribution,
                           const std::string& theta_hash, std::stop_token stop) override;
  bool vote(const SyncId& sync, const std::string& theta_hash, std::stop_token stop) override;
  bool is_renewed(int64_t generation, const std::string& suspect, std::stop_token stop) override;

  // Of a newcomer: asks for the run's state, and waits without a deadline until a donor has it:
  // at once, or when the members have ended a round. Returns nullopt if a stop was requested.
  // Throws as arrive().
  std::optional<HandoverMessage> fetch(const FetchMessage& request, std::stop_token stop);

  // Returns the coordinator's requests to hand over the state after `round`. Drops those for an
  // older one, and keeps those for a newer one. A request that no offer follows comes again.
  std::vector<DonateMessage> take_state_requests(int64_t round);
  // Of a donor: tells the newcomer that the state is sent from now on. Returns whether it wants it
  // still; false if a stop was requested. Throws PeerError after join_seconds without an answer.
  bool offer_state(const OfferMessage& offer, std::stop_token stop);

  // Returns the views up to this generation, as they came, and without those returned before.
  std::vector<ViewMessage> take_views(int64_t generation);

  // Whether the run cannot continue. throw_if_failed() throws the failure. Neither waits.
  bool has_failed() const;
  void throw_if_failed() const;
  // Whether the run pauses, by the coordinator's last answer.
  bool is_paused() const;
  // Sets the content of the next heartbeats.
  void set_activity(int64_t round, int64_t step, const std::string& text);
  // From now on sends the records in `file` to a coordinator that keeps copies of them. What can be
  // read within half of leave_seconds comes before the goodbye.
  void send_records(std::filesystem::path file);
  // Sends the coordinator the figures of a round, without waiting.
  void report(const MetricsMessage& metrics);
  // Tells the coordinator, without waiting, that the connections to a member of `generation` carry
  // nothing. Only about once a second, as long as that lasts.
  void report_standing(int64_t generation, const std::string& site);
  // Says goodbye and waits for the answer, at most leave_seconds. After it only the destructor may
  // be called; any other call throws. A loss does not make it throw; it logs a missing answer.
  void leave(Outcome outcome, const std::string& message);

  // Returns the coordinator's unix time minus this machine's, accurate to about half a round trip.
  double clock_offset_seconds() const;

  // Sets the function that is called once, by the member's thread, when `generation` has lost a
  // member or the run cannot continue. It is called too if that is known already. It must return
  // soon and must not call the member. Setting another or an empty one waits for a call in
  // progress.
  void on_peer_lost(int64_t generation, LossListener listener);

 private:
  struct Request {
    SiteMessage message;
    Repetition repetition = {};
    std::optional<CoordinatorMessage> answer = {};
  };
  struct Failure {
    ErrorKind kind;
    std::string site;
    std::string message;
    bool is_left_behind;
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Requests of one caller. The thread sends and repeats them as long as this object lives.
  class Asking {
   public:
    // Throws the failure if there is one, unless `despite_failure`, as wait() does.
    Asking(Member& member, std::vector<SiteMessage> messages, bool despite_failure = false);
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    // Waits until all are answered, the deadline (on the clock) passes or a stop is requested.
    // Returns an answer, or none, for each.
    std::vector<std::optional<CoordinatorMessage>> wait(double deadline_seconds,
                                                        std::stop_token stop = {});

   private:
    Member& member_;
    const bool despite_failure_;
    std::vector<Request> asked_;
  };

  // Does Asking with one message.
  std::optional<CoordinatorMessage> ask(SiteMessage message, double deadline_seconds,
                                        std::stop_token stop = {}, bool despite_failure = false);
  // Puts `own`, if it is given, and gets the values of `wanted`.
  std::vector<std::string> request_values(const std::optional<PutMessage>& own,
                                          const std::vector<std::string>& wanted);
  // Keeps a value of the start, which a coordinator without it may need.
  void remember(const std::string& key, const std::string& value);
  void throw_failure() const;  // if there is one; the caller holds mutex_
  // Waits under `lock` until `condition`, the deadline or a stop.
  void wait(std::unique_lock<std::mutex>& lock, double deadline_seconds, std::stop_token stop,
            const std::function<bool()>& condition);
  // Returns the newest generation that is known here.
  int64_t generation() const;
  int64_t generation_locked() const;  // the caller holds mutex_
  [[noreturn]] static void throw_lost(const ViewMessage& view);
  // Returns why this generation began: by which loss, or by which broken connection.
  static std::string loss_text(const ViewMessage& view);
  // Throws if a member of the newest sync is lost; the caller holds mutex_.
  void throw_if_outdated() const;
  Deadlines deadlines() const;
  std::string coordinator() const;  // the endpoint of the one that is heard
  // Returns what keeps join() waiting, for the user.
  std::string obstacle_to_joining() const;

  void run();
  void send_due_messages();
  // The caller holds mutex_ in the next five.
  // Makes requests due whose connection has ended.
  void note_lost_requests();
  static bool is_registration(const Request& request);
  bool is_due(const Request& request, bool is_beat) const;
  void send(Request& request);
  // Sends a registration to all coordinators, or to all but this line's. One that is not new goes
  // only where it is due.
  void send_registration(RegisterMessage message, bool is_new, std::optional<std::size_t> but = {});
  // The caller holds mutex_ in the next two.
  // Lets the thread for files read at most so many pieces of the records, unless it does so
  // already. They are sent when they have been read.
  void read_pieces(int most);
  // Returns whether pieces that come before the goodbye are still being read.
  bool holds_back_goodbye();
  // Runs `task` on the thread for files. An exception becomes the member's failure.
  void submit(std::function<void()> task);
  void fail_by(const std::exception& error);
  void handle(const CoordinatorLines::Received& received);
  // Handle the effects of a message beyond answering a request; the caller holds mutex_.
  void on(const Welcome& message);
  void on(const WaitingMessage& message);
  void on(const ClaimMessage& message);
  void on(const HeartbeatAckMessage& message);
  void on(const CommittedMessage& message);
  void on(const DonateMessage& message);
  void on(const ViewMessage& message);
  void on(const PeerLostMessage& message);
  void on(const StopMessage& message);
  void on(const UnknownSiteMessage& message);
  void on(const ErrorMessage& message);
  template <typename Message>
  void on(const Message&) {}
  // The caller holds mutex_, as for the next six.
  const std::string& coordinator_locked() const { return lines_.name(current_); }
  // Whether a message is of the coordinator that serves this site, or of a newer one, which does
  // so from now on.
  bool is_heard(const CoordinatorLines::Received& received);
  void follow(std::size_t line, int64_t term);
  // Whether it is a registration that should be a promise, as soon as the term is written. With the
  // next heartbeat it goes out without one: a disk that hangs must not keep this site away.
  bool waits_for_term(const Request& request) const;
  // Registers again, as a member, until that is answered or the coordinator shows that it knows
  // this site.
  void return_to_run(const std::string& reason);
  RegisterMessage registration_of_member() const;
  void end_return(bool is_known);
  void load_term();
  void keep_term();                     // writes it if it is new, on the thread for files
  void write_term(int64_t term) const;  // logs a failure
  void note_kept_term(int64_t term);    // the caller holds mutex_
  // Whether the coordinator has been away at some time since then; the caller holds mutex_.
  bool was_away_since(double seconds) const;
  double silence_seconds() const;      // the same
  bool is_coordinator_silent() const;  // the same
  // Looks for another coordinator in a silence, and ends the run in a long one.
  void check_coordinator();
  // After so long without a coordinator, or without enough sites at it, the stand-bys are asked.
  double stand_by_patience_seconds() const;  // the caller holds mutex_, as for the next
  bool asks_stand_bys_in_pause() const;
  // Keeps the first failure and ends all waits; the caller holds mutex_.
  void fail(ErrorKind kind, const std::string& site, const std::string& message,
            bool is_left_behind = false);
  void tell_listener();

  const std::string site_;
  Clock& clock_;
  CoordinatorLines lines_;  // used by the thread only, except wake() and name()
  const std::filesystem::path term_file_;
  double next_beat_seconds_ = 0;  // used by the thread only

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Request*> requests_;  // guarded by mutex_, as are the members below
  std::vector<SiteMessage> reports_;
  std::shared_ptr<RecordsReader> records_;  // what it points to is used by the files' thread only
  RecordsState sent_records_;               // what the coordinator has of them, by its last answer
  bool is_reading_ = false;                 // the thread for files reads pieces
  std::vector<RecordsMessage> pieces_;      // that it has read
  double pieces_seconds_ = -kNever;         // when the newest left, on the clock of heartbeats
  std::optional<double> goodbye_limit_seconds_;  // until which the goodbye waits for pieces
  bool has_asked_last_pieces_ = false;           // of the records, before the goodbye
  Deadlines deadlines_;                          // those of the run after the welcome
  HeartbeatMessage activity_;
  std::optional<Welcome> welcome_;
  std::size_t current_ = 0;                          // the line of the coordinator that is heard
  RegisterMessage registration_;                     // of join(), to be repeated by return_to_run()
  std::optional<Request> returning_;                 // while that is not answered; in requests_ too
  bool asks_stand_bys_ = false;                      // in a pause
  std::optional<SyncId> committed_;                  // the newest sync that counts
  int64_t term_ = 0;                                 // the newest of a coordinator
  int64_t asked_term_ = 0;                           // the newest that was given to be written
  int64_t kept_term_ = 0;                            // the newest that is written
  int64_t refused_term_ = 0;                         // an older one, whose messages are dropped
  std::string pause_;                                // why the run pauses; empty if it goes on
  double pause_begin_seconds_ = 0;                   // of the newest one
  std::map<std::string, std::string> start_values_;  // put or got before the first commit
  std::vector<std::string> missing_;                 // sites not registered, from the last message
  std::optional<ViewMessage> view_;                  // of the newest generation, if a site was lost
  std::vector<ViewMessage> new_views_;               // for take_views()
  std::map<std::string, DonateMessage>
      state_requests_;              // for take_state_requests(): the newest by newcomer
  int64_t generation_of_sync_ = 0;  // in which the newest sync began
  std::optional<Failure> failure_;
  double heard_seconds_ = -kNever;          // time of the coordinator's last message
  double answered_beat_seconds_ = -kNever;  // when the newest answered heartbeat was sent
  double back_seconds_ = -kNever;           // when it came back from a silence or a restart
  double clock_offset_seconds_ = 0;
  double best_round_trip_seconds_ = kNever;
  bool is_leaving_ = false;
  bool is_stopping_ = false;

  std::mutex listener_mutex_;
  LossListener listener_;            // guarded by listener_mutex_
  int64_t listener_generation_ = 0;  // the same
  Worker files_;                     // uses all members before it
  std::thread thread_;               // the last member: it uses all others
};

}  // namespace farstep::wan
