// The rosters of a run's coordinators and its sites in one process and in simulated time, for the
// model of the protocol. A seed draws the run, every delay, the loss and repetition of messages,
// and the faults: processes that die and are started again, connections that break, cuts of one
// line or of several at once, and a coordinator that dies and goes on with its journal. Some runs
// do not name all their sites. Or the run has stand-bys: then coordinators die for good too, stand
// still and wake, and hand over.
//
// Each connection keeps the order of its messages, as TCP does. Messages of different connections
// overtake each other. After some seconds no fault comes any more, and the run has to end.
//
// At each step the world checks what must hold in every run, and throws Violation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/wan/roster/model_site.h"
#include "wan/roster/roster.h"

namespace farstep::wan {

inline constexpr double kTickSeconds = 0.5;  // of every state machine

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Random numbers that are cheap to seed: SplitMix64.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t next();
  int64_t below(int64_t end) { return static_cast<int64_t>(next() % static_cast<uint64_t>(end)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  double between(double low, double high);

 private:
  uint64_t state_;
};

// Returns a hash of both.
uint64_t mix(uint64_t a, uint64_t b);

class ModelWorld {
 public:
  // With `is_told`, prints every message.
  explicit ModelWorld(uint64_t seed, bool is_told = false);

  // Plays the run to its end. Throws Violation.
  void play();
  // How the run ended, and what happened in it.
  bool was_completed() const;
  int64_t num_newcomers_taken() const { return num_newcomers_taken_; }
  int64_t num_handovers_in_mid_round() const { return num_handovers_in_mid_round_; }
  bool has_lost_coordinator() const { return num_coordinators_lost_ > 0; }
  int64_t num_takeovers() const { return num_takeovers_; }  // by stand-bys
  // Generations that began without sites of one cut.
  int64_t num_losses_together() const { return num_losses_together_; }

  // ---- for the sites ----
  double now() const { return now_seconds_; }
  Chance& chance() { return chance_; }
  const Deadlines& deadlines() const { return deadlines_; }
  int64_t rounds() const { return rounds_; }
  std::size_t num_coordinators() const { return coordinators_.size(); }
  // The newest term that the site's file has.
  int64_t& known_term(const std::string& site) { return known_terms_[site]; }
  int64_t fragments() const { return fragments_; }
  double step_seconds() { return chance_.between(0.1, longest_round_seconds_); }
  void after(double seconds, std::function<void()> action);
  void send(const ModelSite& from, std::size_t coordinator, const SiteMessage& message);
  // The site takes part in the exchange, and later hears how it ended.
  void join_exchange(ModelSite& site, const Go& go, uint64_t theta, uint64_t delta);
  // The site's connections of this exchange are gone.
  void leave_exchange(const std::string& name, int64_t generation, const SyncId& sync);
  void hand_over(const ModelSite& donor, const Newcomer& newcomer, const ModelState& state);
  void check_member(const ModelSite& site, const Go& go) const;
  void check_handover(const HandoverMessage& handover, const ModelState& state) const;
  void applied(const ModelSite& site, const SyncId& sync, uint64_t theta);
  void gone(ModelSite& site, bool died);
  // For a site that has not heard any coordinator for too long, or whose run has ended.
  void check_stand_bys() const;

 private:
  // What waits at a site until a coordinator is back.
  struct Waiting {
    const ModelSite* from;
    SiteMessage message;
    int64_t epoch;
  };
  struct Link {
    int64_t epoch = 0;  // of the connection
    double newest_up = 0, newest_down = 0;
    double heard = -1e9;  // when the coordinator took a message
    double cut_until = 0, last_fault = -1e9;
    bool keeps_messages = false;  // while it is cut
  };
  struct ModelCoordinator {
    ServedRun run = {};
    std::unique_ptr<Roster> roster = {};  // also while it is down
    bool is_down = false;
    bool stands_still = false;
    double last_change = -1e9;         // by a fault, or of its part in the run
    bool dies_before_answers = false;  // when the journal has the next message's effect
    std::optional<std::vector<Waiting>> waiting = {};  // nothing: messages to it are lost
  };
  struct Event {
    double seconds;
    int64_t number;
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return std::pair(seconds, number) > std::pair(other.seconds, other.number);
    }
  };
  struct Part {
    ModelSite* site = nullptr;
    uint64_t delta = 0;
    bool has_sent = false, is_gone = false, has_ended = false;
  };
  struct ModelExchange {
    std::vector<std::string> members;
    uint64_t theta = 0;
    std::map<std::string, Part> parts;
  };
  struct Commit {
    int64_t generation;
    std::string hash;
  };
  struct Cut {
    double begin_seconds, end_seconds;
    std::set<std::string> connections;
  };
  using Meeting = std::pair<int64_t, SyncId>;  // generation and sync

  void start_process(const std::string& site);
  ModelSite* process_of(const std::string& site);
  void draw_fault();
  void harm_links(ModelSite& process, bool cuts);
  void cut_off_together();
  // The site learns that its connection to a coordinator has ended.
  void end_connection(const std::string& connection, std::size_t place, double after_seconds);
  void fail_link_of_exchange();
  void harm_coordinator();
  void lose_coordinator(std::size_t place);
  void restart_coordinator(std::size_t place);
  RosterState state_after_restart(const ModelCoordinator& coordinator);
  void stop_coordinator(std::size_t place);
  void go_on(std::size_t place);  // with the messages that have waited
  void forget_if_superseded(std::size_t place);
  void notice_new_run();
  // A message has come to the coordinator's machine.
  void arrive(const ModelSite& from, std::size_t place, const SiteMessage& message, int64_t epoch);
  void tick();
  bool has_stand_bys() const { return coordinators_.size() > 1; }
  // Whether a newer coordinator has taken the run over.
  bool is_stale(std::size_t place) const;
  bool is_run_over() const;
  bool is_over() const;
  Link& link(const std::string& connection, std::size_t place) {
    return links_[{connection, place}];
  }
  // Returns when the message arrives, or nothing if it is lost.
  std::optional<double> arrival_seconds(Link& link, double& newest);
  // Checks what the roster has decided. It counts even if nobody hears of it.
  void check_all(std::size_t place, const std::vector<Outgoing>& messages);
  void deliver(std::size_t place, const std::vector<Outgoing>& messages);
  void look_at(const ModelExchange& exchange, const Meeting& meeting);
  void tell(const std::string& direction, const std::string& connection, const std::string& text);

  // The invariants of what the sites send and of what the roster sends.
  void note(const ModelSite& from, const SiteMessage& message);
  void check(std::size_t place, const std::string& connection, const CoordinatorMessage& message);
  void check_claim(std::size_t place) const;
  void check_takeover(const ViewMessage& view);
  void note_handover(const HandoverMessage& handover);
  void check_view(std::size_t place, const ViewMessage& view);
  void check_cuts(std::size_t place, const ViewMessage& view);
  void check_go(const Go& go);
  void check_commit(const CommittedMessage& message);
  void note_stale_commit(const CommittedMessage& message);
  void check_loss_of_run(std::size_t place) const;
  void check_memory(const Roster& roster) const;
  void check_end() const;

  const bool is_told_;
  Chance chance_;
  Deadlines deadlines_;
  std::vector<std::string> names_;
  int64_t rounds_, fragments_, min_sites_;
  double longest_round_seconds_, longest_delay_seconds_;
  int64_t loses_one_in_ = 0, repeats_one_in_ = 0;  // 0: never
  bool restarts_done_sites_;
  int64_t num_faults_;
  double fault_end_seconds_;

  double now_seconds_ = 0;
  int64_t num_steps_ = 0;
  std::priority_queue<Event> events_;
  std::vector<ModelCoordinator> coordinators_;
  std::map<std::string, int64_t> known_terms_;  // by site
  bool is_abandoned_ = false;  // a new run would begin, as all old processes have gone
  std::vector<std::unique_ptr<ModelSite>> processes_;
  std::map<std::string, ModelSite*> newest_process_;  // by site
  std::map<std::string, ModelSite*> by_connection_;
  std::map<std::pair<std::string, std::size_t>, Link> links_;  // by connection and coordinator
  bool is_blank_ = false;       // the only coordinator does not know the run
  bool was_blank_ = false;      // it did not once
  bool was_completed_ = false;  // the last sync was committed
  int64_t num_restarts_due_ = 0;
  std::vector<Cut> cuts_;  // of several sites' lines at once
  std::map<Meeting, ModelExchange> exchanges_;

  int64_t serving_term_ = 0;  // of the coordinator that serves the run; 0: it has not begun
  int64_t generation_ = 1;
  std::vector<std::string> members_;
  std::map<Meeting, std::map<std::string, std::string>> arrivals_, votes_;  // hashes by site
  std::map<Meeting, Go> gos_;
  std::map<SyncId, Commit> commits_;
  // Of coordinators that had been replaced, without the sites that go on.
  std::set<std::pair<SyncId, std::string>> stale_commits_;
  std::map<std::string, SyncId> newest_applied_;  // by connection
  // By token and round: states that donors were asked for in mid-round; that newcomers get.
  std::set<std::pair<std::string, int64_t>> asked_states_, handed_states_;
  int64_t num_newcomers_taken_ = 0, num_handovers_in_mid_round_ = 0, num_coordinators_lost_ = 0,
          num_takeovers_ = 0, num_losses_together_ = 0;
};

}  // namespace farstep::wan
