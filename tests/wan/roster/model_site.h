// One process of a site, for the model of the protocol: what Member, OuterSync and SiteHandover do
// with messages, as a state machine without sockets or threads. It trains nothing: theta_global is
// a hash of the syncs that led to it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "wan/protocol/protocol.h"
#include "wan/protocol/repetition.h"

namespace farstep::wan {

class ModelWorld;

// What a donor sends to a newcomer: the state between two rounds.
struct ModelState {
  int64_t rounds_done = 0;
  uint64_t theta = 0;
};

class ModelSite {
 public:
  // The process registers at once. `connection` is another one for each process.
  ModelSite(ModelWorld& world, std::string name, std::string connection, double uplink);

  const std::string& name() const { return name_; }
  const std::string& connection() const { return connection_; }
  bool is_alive() const { return stage_ != Stage::kGone; }
  // Whether it takes part in the run, and neither joins nor leaves.
  bool takes_part() const;
  // Whether it is ready for the next sync, as far as it knows.
  bool can_go_on() const;
  bool has_done_all() const { return has_done_all_; }
  double age_seconds() const;      // of the process
  double silence_seconds() const;  // of the coordinator
  double pause_seconds() const;    // for which the run has paused, as far as it knows
  // Whether it is a member, and not a newcomer still.
  bool knows_run() const;
  std::string text() const;

  // A message of the coordinator of this place has come.
  void receive(std::size_t coordinator, const CoordinatorMessage& message);
  // Its connection to this coordinator has ended, and what was on it may be lost.
  void connection_ended(std::size_t coordinator);
  void beat();
  // The process ends without a word.
  void crash();
  // The process ends on purpose, as far as it still can.
  void leave(Outcome outcome);

  // Tell how the exchange of this sync ended: with a mean, or by the loss of a connection.
  void exchange_done(int64_t generation, const SyncId& sync, uint64_t mean);
  void exchange_failed(int64_t generation, const SyncId& sync, const std::string& suspect);
  // A donor's state has come.
  void state_came(const std::string& token, const ModelState& state);

 private:
  enum class Stage {
    kJoining,
    kConnecting,
    kTraining,
    kArriving,
    kExchanging,
    kVoting,
    kSuspecting,
    kFetching,
    kReceiving,
    kLeaving,
    kGone
  };

  void enter(Stage stage);
  void ask(Stage stage, SiteMessage request);
  // Calls the function after this time, unless the process has left the stage by then.
  template <typename Function>
  void later(double seconds, Function function);
  // Sends to the coordinators that are to hear it.
  void send(const SiteMessage& message);
  // Sends a copy of a request.
  void send(const SiteMessage& request, Repetition& repetition);
  // Sends a registration where one is due, or to all if it is new; not to `but`.
  void send_registration(RegisterMessage message, bool is_new, std::optional<std::size_t> but = {});
  void repeat(const SiteMessage& request, Repetition& repetition);
  // Whether a message is of the coordinator that serves this site, or of a newer one, which does so
  // from now on; all others are dropped.
  bool hears(std::size_t coordinator, const CoordinatorMessage& message);
  // Notes that the coordinator lives.
  void note_life(const CoordinatorMessage& message);
  // Registers again, where this member is not known or the coordinator is silent.
  void return_to_run();
  RegisterMessage registration_of_member() const;
  void on_view(const ViewMessage& view);
  void on_answer(const CoordinatorMessage& answer);
  void end();

  void fetch();
  void take_state();
  // Puts the own address, and gets those of the other members.
  void connect(int64_t generation, const std::vector<std::string>& members);
  void get_next_address();
  void await_address();
  void connected();
  void lost_while_connecting();
  void train();
  void arrive();
  void begin_exchange(const Go& go);
  // After a failed exchange.
  void renew(const std::string& suspect);
  void give_up_round();
  void apply();
  // As a donor: offers the present state, that after `round`.
  void offer(const Newcomer& newcomer, int64_t round);
  // Serves the coordinator's requests between two steps, if no sync of the round has begun.
  void serve_requests();

  ModelWorld& world_;
  const std::string name_, connection_;
  const double uplink_;
  Stage stage_ = Stage::kJoining;
  int64_t stage_number_ = 0;
  std::optional<SiteMessage> request_;
  Repetition repetition_;                  // of that
  const std::size_t request_bytes_;        // of all its requests but registrations
  std::vector<Repetition> registrations_;  // by coordinator
  double answered_beat_seconds_ = -1e9;
  const double started_seconds_;
  double heard_seconds_;
  double back_seconds_ = -1e9;  // when the coordinator came back from a silence or a restart
  std::size_t current_ = 0;     // the coordinator that is heard
  bool is_returning_ = false;
  bool is_knocking_ = false;  // at the other coordinators, while the run pauses
  std::optional<SyncId> committed_;

  // What Member knows.
  std::optional<Welcome> welcome_;
  std::optional<ViewMessage> view_;
  int64_t generation_ = 0;
  int64_t generation_of_sync_ = 0;
  std::vector<std::string> sites_;

  // The training.
  SyncId sync_;
  uint64_t theta_ = 0;
  bool attends_ = false;                // a newcomer's first round
  std::optional<double> paused_since_;  // the run, by the newest heartbeat answer
  bool has_done_all_ = false;
  std::optional<Go> go_;
  uint64_t mean_ = 0;

  // The links.
  int64_t links_generation_ = 0;
  int64_t connecting_generation_ = 0;
  std::vector<std::string> to_connect_;

  // As a donor: states that it has offered, by the newcomer's token. They are sent when the
  // coordinator has the offer.
  struct Offer {
    Newcomer newcomer;
    ModelState state;
    OfferMessage message;
    Repetition repetition;
  };
  std::map<std::string, Offer> offers_;
  std::map<std::string, DonateMessage> requests_;          // by newcomer
  std::set<std::pair<std::string, int64_t>> are_offered_;  // all that were: token and round

  // The handover.
  int64_t num_fetches_ = 0;
  std::string token_;
  std::optional<HandoverMessage> handover_;
  std::optional<ModelState> state_;
};

}  // namespace farstep::wan
