// What the coordinator sends to a site. Each message lists its fields once, for reading, writing
// and documentation. Values; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wan/protocol/site_messages.h"

namespace farstep::wan {

struct WaitingMessage {
  static constexpr std::string_view kType = "waiting";
  std::vector<std::string> missing;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("missing", missing, "sites of the run that have not registered yet", kRequired);
  }
};

// Answers a registration at a coordinator that may go on with a run: so many sites have come to it
// that no other one can. From then on they hear no coordinator of an older term, and say so by
// registering in this term.
struct ClaimMessage {
  static constexpr std::string_view kType = "claim";
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("term", term, "term of the coordinator", required(in_range(0, kMostCount)));
  }
};

struct Welcome {
  static constexpr std::string_view kType = "welcome";
  Json run;
  int64_t site_id = 0;
  std::vector<std::string> sites;
  int64_t generation = 0;
  int64_t start_syncs = 0;
  std::vector<FirstSite> first_sites = {};
  int64_t min_sites = 1;
  bool is_newcomer = false;
  std::string left = {};
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "the run, as the coordinator holds it", kRequired);
    visit("site_id", site_id, "place of this site in `sites`", required(at_least(0)));
    visit("sites", sites, "names of the members, and of the newcomer", kRequired);
    visit("generation", generation, "generation of the membership",
          required(in_range(0, kMostCount)));
    visit("start_syncs", start_syncs, "syncs done before; above 0 every member resumes from there",
          required(at_least(0)));
    visit("first_sites", first_sites, "with which the run began");
    visit("min_sites", min_sites, "with fewer sites the run pauses", required(at_least(1)));
    visit("is_newcomer", is_newcomer,
          "the run has begun: the site fetches its state, and then is a member too");
    visit("left", left, "states of sites for which the run has taken another; empty without one");
    visit("term", term, "term of the coordinator", required(in_range(0, kMostCount)));
  }
};

struct RefusedMessage {
  static constexpr std::string_view kType = "refused";
  std::string message;
  bool is_temporary = false;
  bool is_left_behind = false;
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("message", message, "why the site may not take part", kRequired);
    visit("term", term, "term of the coordinator", required(in_range(0, kMostCount)));
    visit("is_temporary", is_temporary,
          "another try may succeed, with nothing changed at the site");
    visit("is_left_behind", is_left_behind,
          "the member counts as lost and may join again, over a new connection");
  }
};

struct StoredMessage {
  static constexpr std::string_view kType = "stored";
  std::string key;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("key", key, "the key of the put", kRequired);
  }
};

struct ValueMessage {
  static constexpr std::string_view kType = "value";
  std::string key, value;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("key", key, "the key of the get", kRequired);
    visit("value", value, "any bytes, in hexadecimal");
  }
};

struct HeartbeatAckMessage {
  static constexpr std::string_view kType = "heartbeat_ack";
  double sent_seconds = 0;
  double coordinator_seconds = 0;
  std::string pause = {};
  int64_t term = 0;
  int64_t records = -1;
  std::string records_head = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sent_seconds", sent_seconds, "as in the heartbeat", kRequired);
    visit("coordinator_seconds", coordinator_seconds, "the coordinator's unix time", kRequired);
    visit("pause", pause,
          "why the run pauses, as fewer than min_sites are there; empty if it goes on");
    visit("records", records, "bytes of the site's record file that it has; -1: it keeps none",
          in_range(-1, kMostCount));
    visit("records_head", records_head,
          "checksum of the first line of these; empty: there is none");
    visit("term", term, "term of the coordinator", required(in_range(0, kMostCount)));
  }
};

// A site that is to get the state as it is after a sync, and the member that sends it.
struct Newcomer {
  std::string site;
  FetchMessage request;
  std::string donor;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "its name", kRequired);
    visit("request", request, "where it waits", kRequired);
    visit("donor", donor, "the member that sends it the state", kRequired);
  }
  bool operator==(const Newcomer&) const = default;
};

// A member whose delta is out of proportion.
struct Outlier {
  std::string site;
  bool is_left_out = false;
  std::string reason;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "its name", kRequired);
    visit("is_left_out", is_left_out, "whether the mean is made without its delta", kRequired);
    visit("reason", reason, "what is out of proportion, as the end of a sentence on the delta",
          kRequired);
  }
  bool operator==(const Outlier&) const = default;
};

// Returns whether the mean is made without the delta of `site`.
inline bool leaves_out(std::span<const Outlier> outliers, std::string_view site) {
  return std::ranges::any_of(
      outliers, [&](const auto& outlier) { return outlier.is_left_out && outlier.site == site; });
}

struct Go {
  static constexpr std::string_view kType = "go";
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;
  std::vector<Contribution> contributions;
  std::vector<std::string> sites = {};
  std::vector<Newcomer> newcomers = {};
  std::vector<Outlier> outliers = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "generation of the membership",
          required(in_range(0, kMostCount)));
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("fragment", fragment, "the fragment whose exchange begins",
          required(in_range(0, kMostCount)));
    visit("contributions", contributions, "the members' contributions, in the order of the view",
          kRequired);
    visit("sites", sites, "names of the members, in the same order", kRequired);
    visit("newcomers", newcomers, "with a round's last fragment: who gets the state after it");
    visit("outliers", outliers, "the members whose deltas are out of proportion, in that order");
  }
};

struct CommittedMessage {
  static constexpr std::string_view kType = "committed";
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "generation of the membership",
          required(in_range(0, kMostCount)));
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("fragment", fragment, "the fragment that every site has",
          required(in_range(0, kMostCount)));
  }
};

// Asks a member for the state that all members have shared since a round was committed, as a
// newcomer asks for it in the middle of the next round. A member that cannot serve it keeps silent.
struct DonateMessage {
  static constexpr std::string_view kType = "donate";
  int64_t round = 0;
  Newcomer newcomer;
  double seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the committed round", required(at_least(1)));
    visit("newcomer", newcomer, "who gets the state", kRequired);
    visit("seconds", seconds,
          "how long the newcomer's last transfer took, if it came too late; 0: it did not",
          at_least(0));
  }
};

// Answers an offer of a state that no newcomer waits for any more: the donor sends nothing.
struct UnwantedMessage {
  static constexpr std::string_view kType = "unwanted";
  std::string token;
  int64_t round = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("token", token, "of the offer", kToken);
    visit("round", round, "of the offer", required(in_range(0, kMostCount)));
  }
};

// Answers a fetch: the newest sync of a round is committed, and the donor sends the state after it.
struct HandoverMessage {
  static constexpr std::string_view kType = "handover";
  std::string token;
  std::string donor;
  int64_t round = 0;
  std::string theta_hash;
  std::string endpoint;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("token", token, "of the fetch", kToken);
    visit("donor", donor, "the member that sends the state", kRequired);
    visit("round", round, "the round after which it is the state", required(at_least(1)));
    visit("theta_hash", theta_hash, "checksum of all of theta_global, as the members voted",
          kRequired);
    visit("endpoint", endpoint, "of the donor's offer");
  }
};

// Answers the arrival of a newcomer whose sync has begun without it: it has to fetch the state once
// more.
struct LateMessage {
  static constexpr std::string_view kType = "late";
  int64_t round = 0;
  int64_t fragment = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("fragment", fragment, "the fragment", required(in_range(0, kMostCount)));
  }
};

// A new generation has begun, without a site or with a newcomer. An answer to any request of an
// older generation: the open sync begins anew among its members.
struct ViewMessage {
  static constexpr std::string_view kType = "view";
  int64_t generation = 0;
  std::vector<std::string> sites;
  std::string lost, reason;
  int64_t lost_generation = 0;
  std::string joined = {};
  int64_t committed_round = -1;
  int64_t committed_fragment = 0;
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "the new generation", required(in_range(0, kMostCount)));
    visit("sites", sites, "names of its members; their order gives their places", kRequired);
    visit("lost", lost, "the site that was lost last; empty: none was");
    visit("reason", reason, "why it is gone, or which connection broke");
    visit("lost_generation", lost_generation, "the generation that began without it",
          in_range(0, kMostCount));
    visit("joined", joined, "the newcomer with which this generation began; empty: none");
    visit("committed_round", committed_round, "round of the newest committed sync; -1: none");
    visit("committed_fragment", committed_fragment, "its fragment");
    visit("term", term, "term of the coordinator", required(in_range(0, kMostCount)));
  }
};

struct PeerLostMessage {
  static constexpr std::string_view kType = "peer_lost";
  std::string site, reason;
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "the site that is gone; empty: the coordinator ends");
    visit("reason", reason, "why it is gone", kRequired);
    visit("term", term, "term of the coordinator", required(in_range(0, kMostCount)));
  }
};

struct StopMessage {
  static constexpr std::string_view kType = "stop";
  std::string reason;
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("reason", reason, "which sites hold another theta_global", kRequired);
    visit("term", term, "term of the coordinator", required(in_range(0, kMostCount)));
  }
};

struct UnknownSiteMessage {
  static constexpr std::string_view kType = "unknown_site";
  std::string message;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("message", message, "why the sender is no member", kRequired);
  }
};

struct ErrorMessage {
  static constexpr std::string_view kType = "error";
  std::string message;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("message", message, "the fault of a message of the site", kRequired);
  }
};

struct GoodbyeMessage {
  static constexpr std::string_view kType = "goodbye";
  template <typename Visitor>
  void fields(Visitor&& /*visit*/) {}
};

using CoordinatorMessage =
    std::variant<WaitingMessage, ClaimMessage, Welcome, RefusedMessage, StoredMessage, ValueMessage,
                 HeartbeatAckMessage, Go, CommittedMessage, DonateMessage, UnwantedMessage,
                 HandoverMessage, LateMessage, ViewMessage, PeerLostMessage, StopMessage,
                 UnknownSiteMessage, ErrorMessage, GoodbyeMessage>;

}  // namespace farstep::wan
