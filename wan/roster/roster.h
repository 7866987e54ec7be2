// Who takes part in a run, and how far the open sync has come: the coordinator's whole logic as a
// state machine without sockets, threads or a clock. Every call is given the time and returns the
// messages that are to be sent.
//
// A run has three phases: joining, running (sync after sync, fragment by fragment and round by
// round: all arrive, go, all vote, committed), over (every site has left or is lost). It begins
// when every named site and enough others have registered, with the state that most of them have
// (common_start). Those without it are newcomers. It begins without a named site if that one
// cannot have a newer state, or does not come for nearly join_seconds and most others are there.
// Every request may come twice and is then answered again, as sites repeat what is not answered.
//
// When a site is lost or leaves early, a new generation begins without it, and the open sync begins
// anew among the others. They are told at once, and again whenever they ask in an older generation.
// A sync on which all members have voted stays committed. With fewer sites than the run wants, it
// pauses instead, and those that are lost stay members until enough others are there.
//
// When only a connection between two living members breaks, the same members begin a new
// generation, and the open sync anew, over new connections. If that does not help, the site that
// most others do not reach is lost.
//
// A site that is no member may register in the run that goes on: it is a newcomer. It fetches the
// state that all share between two rounds, from a donor that the roster names, and arrives at the
// next sync. In the middle of a round a donor is asked for the state of its start. If that one
// cannot serve it, the newcomer gets the state after the round. All wait at the sync for as long as
// the transfer is expected to take. If the newcomer is there in time, a generation with it begins.
// Otherwise it fetches again. One that fails before a sync is committed with it leaves the run as
// it was before.
//
// A member that lives, but comes to a sync a round later than it usually does, is left behind, if
// enough others are there.
//
// A coordinator that is restarted goes on from a state(). Sites keep their connections' ids, so the
// roster knows them when they come back. No site counts as lost before it had its time to do so.
// Each start has a newer term; messages that the coordinator decides alone carry it.
//
// Without a state, as a stand-by, it goes on by what the members know. When enough sites register
// here it claims their run: they register once more, in its term, and hear no older coordinator.
//
// Times are the coordinator's unix seconds on a steady scale. Not thread-safe: one owner.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wan/admission/common_start.h"
#include "wan/admission/served_run.h"
#include "wan/protocol/deadlines.h"
#include "wan/protocol/protocol.h"
#include "wan/roster/arrival_history.h"
#include "wan/roster/link_reports.h"
#include "wan/roster/open_sync.h"
#include "wan/roster/roster_state.h"

namespace farstep::wan {

// A message to the holder of a connection.
struct Outgoing {
  std::string connection;
  CoordinatorMessage message;
};

class Roster {
 public:
  // Waits for the sites of `run`, which are all different.
  Roster(ServedRun run, const Deadlines& deadlines);
  // Goes on from `state`, which must fit `run`.
  Roster(ServedRun run, const Deadlines& deadlines, const RosterState& state, double now_seconds);
  // Returns what a roster that goes on later must know.
  RosterState state() const;

  // What follows from a message that came over `connection`.
  std::vector<Outgoing> receive(const std::string& connection, const SiteMessage& message,
                                double now_seconds);
  // Tells that `connection` broke: that of a process which has ended, or connects again.
  void on_broken(const std::string& connection, double now_seconds);
  // Tells that the machine of `site` has closed its line to this one, and it has made no other.
  void on_closed_line(const std::string& site, double now_seconds);
  // What follows from the time alone: sites that have been silent for too long are lost. To be
  // called after all messages that have come were received, at least once a heartbeat.
  std::vector<Outgoing> tick(double now_seconds);

  // Whether all expected sites have registered.
  bool has_begun() const { return sync_.has_value(); }
  // The newest term that it knows.
  int64_t term() const { return term_; }
  // Whether a new process asks to join, and no former member has come back in time.
  bool is_abandoned() const;
  // Whether the sites have a newer state, or a coordinator of a newer term. This one takes no more
  // messages; one without a state may go on.
  bool is_superseded() const { return is_superseded_; }
  // Ends the run for all sites that are in it still, because the coordinator ends.
  std::vector<Outgoing> end(const std::string& reason);
  // Sends the sites to the run's other coordinators, because this one ends. It takes no more
  // messages.
  std::vector<Outgoing> hand_over(const std::string& reason);
  // Whether no site is in the run any more, as far as this roster knows.
  bool is_over() const;
  // Why the run ended early; empty if it did not.
  const std::string& failure() const { return progress_.failure; }
  // Why the newest generation began, in words; empty in the first one.
  const std::string& newest_change() const { return progress_.newest_change; }
  // Why the run pauses, in words; empty if it goes on.
  std::string pause_text() const { return pause_ ? pause_->text() : ""; }
  // The newest round of which all sites have sent their metrics, in words; empty without one.
  const std::string& round_summary() const { return round_summary_; }
  // Returns the site that takes part over `connection`; empty if none does.
  std::string site_at(const std::string& connection) const;
  // Which states of sites the run has left for another one when it began, in words; empty: none.
  const std::string& left_states() const { return left_states_; }
  // Returns the members with which the newest generation goes on.
  const std::vector<std::string>& members() const { return progress_.members; }
  // Returns the sites that take part, here or in a run that this roster does not know.
  std::vector<std::string> connected_sites() const;
  // How many values and waiting requests it keeps for the sites. It forgets them with the
  // generation that they are for, but for the values that were put before the first commit.
  std::size_t num_kept() const;

 private:
  struct Seat {
    explicit Seat(std::string name) : site(std::move(name)) {}
    std::string site;
    Presence presence = Presence::kExpected;
    std::string connection;
    RegisterMessage request;
    HeartbeatMessage heartbeat;
    std::optional<MetricsMessage> metrics;  // of the newest round
    double heard_seconds = 0, first_seconds = 0;
    bool is_suspected = false;  // another site, or the coordinator, lost its connection to it
    bool is_replaced = false;   // another process of the site asks for its place
    // Of a newcomer: its newest request for the state, and the answer, which waits for the donor's
    // offer.
    std::optional<FetchMessage> fetch = {};
    std::optional<HandoverMessage> handover = {};
    bool is_offered = false;
    bool is_asked = false;        // the donor, in mid-round: it may keep silent
    double handover_seconds = 0;  // the time of the answer
    double expected_seconds = 0;  // of the transfer, by the donor's figures; 0: it has none
    double fetch_seconds = 0;     // that the state took, if the newcomer was late then; else 0
    bool is_awaited = false;      // not heard of since the roster goes on
    bool is_on_trial = false;     // it was a newcomer, and no sync is committed since
    std::string loss = {};        // why it is lost or has left, in words
  };

  // Members' exchanges failed, though their peers may all live.
  struct Trouble {
    double begin_seconds;
    std::map<std::string, std::string> suspects;  // by member; empty: it does not know
  };

  // Too few sites are there. No sync begins, and the members that are lost stay members.
  struct Pause {
    double begin_seconds;
    std::string site;  // the first that was lost; empty if none was
    std::string reason;
    std::optional<double> enough_seconds = {};  // since when enough sites are there again

    std::string text() const { return site.empty() ? reason : "site " + site + ": " + reason; }
  };

  // A member of a run that this roster does not know.
  struct Returning {
    RegisterMessage message;
    std::string connection;
    double first_seconds, heard_seconds;
    int beats = 0;  // since the registration
  };

  // A site of a run that this roster does not know, as far as its connection tells.
  struct Neighbour {
    std::string connection;
    double heard_seconds;
    bool is_suspected = false;
  };

  // What a site that asks to take part said last.
  struct Candidate {
    std::string connection;
    const RegisterMessage* message;
  };

  struct Value {
    std::string text;
    bool is_of_start;  // put before the first commit: newcomers may want it
  };

  void on(Seat& seat, const RegisterMessage& message);
  void on(Seat& seat, const PutMessage& message);
  void on(Seat& seat, const GetMessage& message);
  void on(Seat& seat, const FetchMessage& message);
  void on(Seat& seat, const HeartbeatMessage& message);
  void on(Seat& seat, const ArriveMessage& message);
  void on(Seat& seat, const VoteMessage& message);
  void on(Seat& seat, const MetricsMessage& message);
  void on(Seat& /*seat*/, const RecordsMessage& /*message*/) {}
  void on(Seat& seat, const SuspectMessage& message);
  void on(Seat& seat, const OfferMessage& message);
  void on(Seat& seat, const LeaveMessage& message);
  void on_stranger(const std::string& connection, const SiteMessage& message);

  // A connection of a site broke.
  void suspect(auto& site) { site.is_suspected |= is_recent(site.heard_seconds); }
  // Takes a sign of life of a present site.
  void hear(Seat& seat);
  // Notes a term that a site knows.
  void learn_term(const std::string& site, int64_t term);
  void step_down(const std::string& reason);
  // Tells that another process of a site asks for the place of this one.
  void note_replaced(const std::string& site);
  // The host's process has ended with the coordinator before this one.
  void lose_former_host();
  // Whether a newcomer has to wait, because the process that had its place may come back.
  bool may_come_back(const std::string& site) const;
  // Waits until one of the sites is heard of.
  void rest();
  std::vector<std::string> awaited_sites() const;
  void admit(const std::string& connection, const RegisterMessage& message);
  // Why a site may not join; nothing if it may.
  std::optional<RefusedMessage> objection(const RegisterMessage& message) const;
  // Takes in a site of a run that this roster does not know.
  void gather(const std::string& connection, const RegisterMessage& message);
  std::optional<RefusedMessage> objection_to_return(const RegisterMessage& message) const;
  // Notes a message of a site of the unknown run.
  void note_neighbour(const std::string& site, const std::string& connection);
  void hear_neighbour(const std::string& connection);
  // Whether a member of the unknown run has had its time to come here.
  bool is_given_up(const std::string& site) const;
  // A site that does not repeat its registration before a heartbeat takes part elsewhere.
  void forget_settled(const std::string& connection);
  // Answers the registration of a site that waits for the run to begin, or to go on.
  void let_wait(const std::string& connection, const RegisterMessage& message);
  // Whether a site hears no other coordinator any more.
  bool has_promised(const RegisterMessage& message) const;
  // Claims the unknown run when enough of its sites have come, and goes on with it when all of
  // them have promised to hear no other coordinator.
  void take_over_if_possible();
  void take_over(const RegisterMessage& newest);
  // Sends the newcomers of the unknown run back to join anew, if none of its members lives.
  void dismiss_newcomers_of_lost_run();
  // Returns the sites that ask lately, of both kinds.
  std::vector<Candidate> candidates() const;
  // Returns the members' registration of the newest generation; null if no member has come.
  const RegisterMessage* newest_return() const;
  std::vector<std::string> unreturned_members() const;
  bool is_recent(double seconds) const { return now_seconds_ - seconds <= suspect_seconds_; }
  // Takes over what a member knows.
  void learn(const RegisterMessage& message);
  // Takes in a site of a begun run that is no member.
  void admit_newcomer(Seat& seat, const std::string& connection, const RegisterMessage& message);
  void seat_newcomer(Seat& seat, const std::string& connection, const RegisterMessage& message);
  // Handles the arrival of a newcomer at a sync.
  void welcome_into_sync(Seat& seat, const ArriveMessage& message);
  // Whether a newcomer has asked for a state, and no donor is named yet.
  bool wants_state(const Seat& seat) const;
  // Asks a member for each newcomer that wants a state: for the one after the newest round, if the
  // next round's first sync has not begun.
  void ask_donors();
  void ask_donor_of(const Seat& newcomer);
  // Returns one of `donors` in turn; not a member that the newcomer did not reach, if there are
  // more.
  const std::string& donor_for(const std::string& newcomer, const std::vector<std::string>& donors,
                               std::size_t turn) const;
  // Names a donor for each newcomer that waits for the state after the open sync.
  std::vector<Newcomer> newcomers_of_sync() const;
  // Notes which state the newcomers of the committed sync get. They are told when their donors
  // offer it.
  void prepare_handovers(const OpenSync& sync);
  // Frees newcomers whose donor is no longer a member, so that they get another one.
  void forget_lost_donors();
  // Forgets what donors have not offered when a sync begins.
  void forget_late_states();
  // Sends the newcomers away if no member is left that could give them the state.
  void dismiss_newcomers();
  // Begins the run if all sites that it needs are there.
  void begin_if_possible();
  void begin(const CommonStart& start);
  std::vector<RegisterMessage> requests_of_present() const;
  // Whether the sites that are there have waited for the others for as long as they can.
  bool have_waited_long() const;
  bool has_majority(const CommonStart& start) const;
  void begin_generation(const std::string& change);
  Welcome welcome(const Seat& seat) const;
  bool is_member(const Seat& seat) const;
  bool has_present_member() const;
  // Whether a member is lost or has left early.
  bool is_missed(const Seat& seat) const;
  static bool is_present(const Seat& seat) { return seat.presence == Presence::kPresent; }
  // Returns the members and this site, in the order of the run's sites.
  std::vector<std::string> members_with(const Seat& seat) const;
  // Whether a site that knows `generation` has missed that a newer one has begun.
  bool is_outdated(int64_t generation) const;
  // Returns the message that tells a member of the present generation.
  ViewMessage view() const;
  std::vector<std::string> site_names() const;
  std::vector<std::string> missing_sites() const;

  // A member says that its link to another one carries nothing.
  void note_standing(const Seat& seat, const std::string& suspect);
  // Such a link counts as broken if it stays so for long though both ends live.
  void break_standing_links();
  // Whether all members live, so that no loss is the cause of the trouble.
  bool do_all_live() const;
  // Begins a generation of the same members, because a connection between two of them broke.
  void repeat_sync();
  // Returns the link to the site that most members suspect. Of several with as many, it takes the
  // last in the run's order that is not the coordinator's host.
  BrokenLink worst_link() const;
  // For how long the members try to make a link before one of the two is lost.
  double link_patience_seconds() const;
  // Answers a newcomer that has to wait for that. Returns whether there is one.
  bool lets_severed_wait(const std::string& connection, const std::string& site);
  // Whether all wait for a newcomer that was late before, and has the state nearly.
  bool waits_for_newcomer() const;

  void open_sync(const SyncId& id);
  // Starts the open sync's exchange if all have arrived.
  void start_sync_if_ready();
  // Whether a message belongs to the open sync; answers it if it does not.
  bool is_current(const Seat& seat, std::string_view type, int64_t generation, const SyncId& id);
  std::string text(const SyncId& id) const { return text_of(id, progress_.fragments); }

  // The others go on without a member that does not come to the sync, though it lives.
  void leave_laggard_behind();
  // Sites that are silent for too long are lost: in one decision, if they fell silent together.
  void lose_silent_sites();
  bool seems_ended(const Seat& seat) const;
  // When a site counts as lost unless it is heard of.
  double patience_end_seconds(const Seat& seat) const;
  // A site is lost or has left. With too few left the run pauses; if it cannot return, it ends.
  void lose(Seat& seat, Presence presence, const std::string& reason, bool may_return = true);
  // Both parts of that: of several sites, all are noted before anything follows.
  void note_loss(Seat& seat, Presence presence, const std::string& reason);
  void follow_loss(const Seat& seat, bool may_return);
  // Goes on without the members that are missing if enough sites are there; else pauses.
  void settle();
  void pause(Pause pause);
  // Whether others may be heard as well in a moment, now that enough sites are there again.
  bool waits_for_more();
  void resume();
  void end_long_pause();
  void rest_if_all_are_silent();
  // A member is heard of again for which the run has waited.
  void come_back(Seat& seat);
  // Begins a generation without these members. The open sync begins anew.
  void go_on_without(const std::vector<std::string>& sites, const std::string& reason);
  // Says so if half of the sites or more are away; else empty.
  std::string minority_text() const;
  void make_newcomer(Seat& seat, const std::string& reason);
  void end_early(const CoordinatorMessage& verdict, const std::string& failure);

  // Makes room for a site that the run may not name.
  void make_seat(const std::string& site);
  void drop_spare_seats();
  // Returns how many sites have a place in the run, not counting the one that asks for one.
  int64_t num_places_taken(const std::string& newcomer) const;
  Seat* seat_of_connection(const std::string& connection);
  const Seat* seat_of_site(const std::string& site) const;
  void send(const std::string& connection, CoordinatorMessage message);
  void send_to_all(const CoordinatorMessage& message);
  void send_to_members(const CoordinatorMessage& message);

  const ServedRun run_;
  const double lost_after_seconds_, suspect_seconds_, heartbeat_seconds_, connect_seconds_,
      join_seconds_, pause_seconds_;
  const int64_t min_sites_;
  std::vector<Seat> seats_;  // of the sites that the run names, then of others
  Progress progress_;
  std::optional<OpenSync> sync_;            // nothing while joining
  double all_arrived_seconds_ = 0;          // when the newest member arrived there
  std::optional<Trouble> trouble_;          // in the open sync's exchange
  std::optional<double> troubled_seconds_;  // since when that sync is begun anew
  LinkReports link_reports_;
  std::optional<Pause> pause_;
  ArrivalHistory arrival_history_;
  std::map<std::string, Returning> returning_;   // by site
  std::map<std::string, Neighbour> neighbours_;  // by site
  double enough_seconds_ = 0;                    // since when enough of them ask to go on here
  double last_enough_seconds_ = 0;               // when they did last
  bool is_claiming_ = false;                     // the sites are asked to hear no other coordinator
  bool has_run_ended_ = false;                   // the unknown run, as one of its sites has said
  double stranger_seconds_ = 0;                  // when such a site was heard of
  std::map<std::string, Value> values_;
  std::map<std::string, std::set<std::string>> getters_;  // connections that wait, by key
  std::optional<CoordinatorMessage> verdict_;             // what ended the run early
  int64_t term_ = 1;
  bool is_resting_ = false;       // nobody is heard of
  bool has_former_host_ = false;  // the state is that of another coordinator's process
  bool has_new_process_ = false;  // that waits for a member's place, while no member is there
  bool is_superseded_ = false;
  std::string left_states_;  // for which the run has begun with another, in words
  std::string round_summary_;
  double now_seconds_ = 0;        // of the call that runs
  std::vector<Outgoing> outbox_;  // of the call that runs
};

}  // namespace farstep::wan
