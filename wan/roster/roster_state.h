// The part of a coordinator's state that is saved: what its sites cannot tell it again. Arrivals,
// votes and requests are not in it, because sites repeat them until they are answered. Values;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wan/admission/served_run.h"
#include "wan/protocol/protocol.h"

namespace farstep::wan {

enum class Presence { kExpected, kPresent, kLeft, kLost };
std::span<const std::string_view> enum_names(Presence);

// A site of a run that has begun.
struct SeatState {
  std::string site;
  Presence presence = Presence::kExpected;
  std::string connection;  // in hexadecimal
  Json facts = Json::object();
  std::string loss;
  std::optional<FetchMessage> fetch;
  std::optional<HandoverMessage> handover;
  bool is_offered = false;
  bool is_asked = false;
  bool is_on_trial = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "its name", kRequired);
    visit("presence", presence, "whether it takes part", kRequired);
    visit("connection", connection, "routing id of its process; empty: none is known");
    visit("facts", facts, "what must be equal at all sites");
    visit("loss", loss, "why it is lost or has left early");
    visit("fetch", fetch, "its newest request for the run's state, if it came as a newcomer");
    visit("handover", handover, "the answer, which the donor keeps to");
    visit("is_offered", is_offered, "the donor has the state ready, and the answer may leave");
    visit("is_asked", is_asked, "the donor was asked in mid-round, and may keep silent");
    visit("is_on_trial", is_on_trial, "it was a newcomer, and no sync is committed since");
  }
};

// A site at the open sync.
struct ArrivalState {
  std::string site;
  ArriveMessage message;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "who has arrived", kRequired);
    visit("message", message, "with what", kRequired);
  }
};

// What a site has put.
struct ValueState {
  std::string key, value;
  bool is_of_start = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("key", key, "of a put", kRequired);
    visit("value", value, "its bytes, in hexadecimal");
    visit("is_of_start", is_of_start, "put before the first commit");
  }
};

// A round whose syncs are all committed, while none of the next one is.
struct CommittedRound {
  int64_t round = 1;
  std::string theta_hash;           // of all of theta_global after it, as the members voted
  std::vector<std::string> donors;  // OpenSync::donors() of its last sync

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("theta_hash", theta_hash, "of theta_global after it", kRequired);
    visit("donors", donors, "members that can hand over the state after it", kRequired);
  }
};

// How far a run has come.
struct Progress {
  int64_t generation = 1;
  std::vector<std::string> members;    // of the generation, in the order of the run's sites
  std::string joined_site;             // with which the generation began
  std::string lost_site, lost_reason;  // the newest loss
  int64_t lost_generation = 0;         // which began with it
  int64_t fragments = 1;               // of the round of the open sync, as far as that is known
  std::vector<FirstSite> first_sites;  // with which the run began
  int64_t start_syncs = 0;
  bool takes_any_sync = false;      // of sites that resume, which know where they are
  bool may_measure = false;         // the first sync may be kMeasuringSync
  std::optional<SyncId> last_sync;  // that was committed here
  // With its last sync, until the next one is committed. All members share the state after it.
  std::optional<CommittedRound> last_round;
  std::string failure;        // why the run ended early, in words
  std::string newest_change;  // why the generation began, in words

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "of the membership", required(in_range(1, kMostCount)));
    visit("members", members, "of the generation", required(at_least(1)));
    visit("joined_site", joined_site, "with which the generation began");
    visit("lost_site", lost_site, "the newest that was lost");
    visit("lost_reason", lost_reason, "why it was lost");
    visit("lost_generation", lost_generation, "that began with its loss", in_range(0, kMostCount));
    visit("fragments", fragments, "of the open sync's round", required(in_range(1, kMostCount)));
    visit("first_sites", first_sites, "with which the run began");
    visit("start_syncs", start_syncs, "syncs done before", required(in_range(0, kMostCount)));
    visit("takes_any_sync", takes_any_sync, "the first arrival says which sync is open");
    visit("may_measure", may_measure, "the first sync may be the measuring one");
    visit("last_sync", last_sync, "the newest committed one");
    visit("last_round", last_round, "the newest, if its last sync is the newest committed one");
    visit("failure", failure, "why the run ended early");
    visit("newest_change", newest_change, "why the generation began");
  }
};

// A run that has begun.
struct BegunState {
  Progress progress;
  SyncId open_sync;
  std::vector<ArrivalState> arrivals;  // of the open sync, once its exchange has begun
  std::vector<Newcomer> newcomers;     // that get the state after it
  std::vector<ValueState> values;
  std::string verdict;  // the message that ended the run early, as a frame; empty without one
  std::vector<SeatState> seats;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("progress", progress, "how far it has come", kRequired);
    visit("open_sync", open_sync, "the next one", kRequired);
    visit("arrivals", arrivals, "at the open sync, if its exchange has begun");
    visit("newcomers", newcomers, "that get the state after it");
    visit("values", values, "what the sites have put");
    visit("verdict", verdict, "what ended the run early");
    visit("seats", seats, "of the sites that the run names, then of others", kRequired);
  }
};

struct RosterState {
  int64_t term = 1;
  std::optional<BegunState> run;  // nothing while sites join

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("term", term, "of the coordinator", required(in_range(1, kMostCount)));
    visit("run", run, "if it has begun");
  }

  // Throws DataError if no roster of `run` can have been in this state.
  void require_fits(const ServedRun& served) const;
};

}  // namespace farstep::wan
