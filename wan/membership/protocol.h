// The messages between the coordinator and the sites. A message is one JSON object in one frame:
// {"protocol": 6, "type": "arrive", ...the fields below...}. docs/internals/protocol.md lists which
// message answers which.
//
// Each message lists its fields once, for reading, writing and documentation. A message with an
// unknown type, an unknown member or another protocol version is refused. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heterogeneity/plan/round_timing.h"
#include "outer_optimizer/schedule/work.h"
#include "trainer/base/outcome.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep {

inline constexpr int64_t kProtocolVersion = 6;

// Identifies a sync of a run: of one fragment of the model, in one outer round. Syncs follow each
// other fragment by fragment, round by round.
struct SyncId {
  int64_t round = 1;     // from 1
  int64_t fragment = 0;  // from 0
  auto operator<=>(const SyncId&) const = default;
};

// The most that any count of a message may be: far beyond every run, and sums of it stay in range.
inline constexpr double kMostCount = 1e15;

// Comes before the first sync of a run if the planner knows nothing of the sites. Sites arrive and
// vote as at any sync; they report their step times and exchange nothing else.
inline constexpr SyncId kMeasuringSync{.round = 0, .fragment = 0};

// Returns "the measuring sync", "round 3", or "round 3, fragment 1" if there are several fragments.
std::string text_of(const SyncId& sync, int64_t num_fragments);

// ---- from a site to the coordinator ----

// The data that a site brings when it joins.
struct JoinRequest {
  std::optional<Json> run;
  bool resume = false;
  std::vector<int64_t> resumable_syncs;
  Json facts = Json::object();
  Json profile;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "the site's own copy of the run, every default written out; null has none");
    visit("resume", resume, "the site continues from a checkpoint");
    visit("resumable_syncs", resumable_syncs, "numbers of completed syncs of its checkpoints");
    visit("facts", facts,
          "facts that must be equal at all sites: digest of the data, parameters, ...");
    visit("profile", profile, "the site's profile, for the plan; null if it has none");
  }
};

struct RegisterMessage : JoinRequest {
  static constexpr std::string_view kType = "register";
  std::string site;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "name of the site, as in the run", kRequired);
    JoinRequest::fields(visit);
  }
};

struct PutMessage {
  static constexpr std::string_view kType = "put";
  std::string key, value;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("key", key, "written once in a run", kRequired);
    visit("value", value, "any bytes, in hexadecimal");
  }
};

struct GetMessage {
  static constexpr std::string_view kType = "get";
  std::string key;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("key", key, "the key to wait for", kRequired);
  }
};

struct HeartbeatMessage {
  static constexpr std::string_view kType = "heartbeat";
  double sent_seconds = 0;
  int64_t round = 0;
  int64_t step = 0;
  std::string activity;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sent_seconds", sent_seconds, "the site's unix time, echoed in the answer", kRequired);
    visit("round", round, "outer round that the site is in");
    visit("step", step, "inner steps of the round that it has done");
    visit("activity", activity, "its activity, in a word or two");
  }
};

// What a site brings to a sync: the work in its delta, for the averaging weights, and the timing of
// its round, for the next plan. Membership hands both on unread.
struct Contribution {
  Work work = {};
  RoundTiming timing = {};
  int64_t fragments = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("work", work, "the training that the delta stands for", kRequired);
    visit("timing", timing, "the site's round so far, and its links", kRequired);
    visit("fragments", fragments, "fragments that the site syncs in the round",
          in_range(1, kMostCount));
  }
  bool operator==(const Contribution&) const = default;
};

struct ArriveMessage {
  static constexpr std::string_view kType = "arrive";
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;
  Contribution contribution;
  std::string theta_hash;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "generation of the membership",
          required(in_range(0, kMostCount)));
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("fragment", fragment, "the fragment whose delta is taken",
          required(in_range(0, kMostCount)));
    visit("contribution", contribution, "the site's contribution", kRequired);
    visit("theta_hash", theta_hash, "checksum of the fragment of theta_global before the sync",
          kRequired);
  }
};

struct VoteMessage {
  static constexpr std::string_view kType = "vote";
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;
  std::string theta_hash;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "generation of the membership",
          required(in_range(0, kMostCount)));
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("fragment", fragment, "the fragment whose exchange is done",
          required(in_range(0, kMostCount)));
    visit("theta_hash", theta_hash,
          "checksum of the fragment of theta_global as the outer step would make it; with the "
          "last fragment of a round, of all of theta_global",
          kRequired);
  }
};

struct MetricsMessage {
  static constexpr std::string_view kType = "metrics";
  int64_t round = 0;
  double train_loss = 0;
  int64_t tokens = 0;
  double compute_seconds = 0, idle_seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the committed round", required(at_least(1)));
    visit("train_loss", train_loss, "mean loss of the site's steps in it", kRequired);
    visit("tokens", tokens, "tokens that the site was trained on in it", required(at_least(0)));
    visit("compute_seconds", compute_seconds, "time of its inner steps", required(at_least(0)));
    visit("idle_seconds", idle_seconds, "time without training work", required(at_least(0)));
  }
};

struct LeaveMessage {
  static constexpr std::string_view kType = "leave";
  Outcome outcome = Outcome::kDone;
  std::string message;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("outcome", outcome, "how the run ended at the site", kRequired);
    visit("message", message, "why, for the other sites to read");
  }
};

using SiteMessage = std::variant<RegisterMessage, PutMessage, GetMessage, HeartbeatMessage,
                                 ArriveMessage, VoteMessage, MetricsMessage, LeaveMessage>;

// ---- from the coordinator to a site ----

struct WaitingMessage {
  static constexpr std::string_view kType = "waiting";
  std::vector<std::string> missing;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("missing", missing, "sites of the run that have not registered yet", kRequired);
  }
};

struct Welcome {
  static constexpr std::string_view kType = "welcome";
  Json run;
  int64_t site_id = 0;
  std::vector<std::string> sites;
  int64_t generation = 0;
  int64_t start_syncs = 0;
  std::vector<Json> profiles = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "the run, as the coordinator holds it", kRequired);
    visit("site_id", site_id, "place of this site in `sites`", required(at_least(0)));
    visit("sites", sites, "names of all sites in the order of their ids", kRequired);
    visit("generation", generation, "generation of the membership",
          required(in_range(0, kMostCount)));
    visit("start_syncs", start_syncs, "syncs done before; above 0 every site resumes from there",
          required(at_least(0)));
    visit("profiles", profiles, "the sites' profiles, in order of site id");
  }
};

struct RefusedMessage {
  static constexpr std::string_view kType = "refused";
  std::string message;
  bool is_temporary = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("message", message, "why the site may not take part", kRequired);
    visit("is_temporary", is_temporary,
          "another try may succeed, with nothing changed at the site");
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

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sent_seconds", sent_seconds, "as in the heartbeat", kRequired);
    visit("coordinator_seconds", coordinator_seconds, "the coordinator's unix time", kRequired);
  }
};

struct Go {
  static constexpr std::string_view kType = "go";
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;
  std::vector<Contribution> contributions;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "generation of the membership",
          required(in_range(0, kMostCount)));
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("fragment", fragment, "the fragment whose exchange begins", kRequired);
    visit("contributions", contributions, "the sites' contributions, in order of site id",
          kRequired);
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
    visit("fragment", fragment, "the fragment that every site has", kRequired);
  }
};

struct PeerLostMessage {
  static constexpr std::string_view kType = "peer_lost";
  std::string site, reason;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "the site that is gone", kRequired);
    visit("reason", reason, "why it is gone", kRequired);
  }
};

struct StopMessage {
  static constexpr std::string_view kType = "stop";
  std::string reason;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("reason", reason, "which sites hold another theta_global", kRequired);
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
    std::variant<WaitingMessage, Welcome, RefusedMessage, StoredMessage, ValueMessage,
                 HeartbeatAckMessage, Go, CommittedMessage, PeerLostMessage, StopMessage,
                 UnknownSiteMessage, ErrorMessage, GoodbyeMessage>;

// ---- text ----

// Returns the frame of a message. Replaces bytes that are not UTF-8.
std::string encode(const SiteMessage& message);
std::string encode(const CoordinatorMessage& message);

// Return the message of a frame. Throw DataError if it is not a message of Farstep, and ConfigError
// if it has another protocol version, an unknown type or wrong members.
SiteMessage decode_site_message(const std::string& frame);
CoordinatorMessage decode_coordinator_message(const std::string& frame);

// Whether `answer` completes `request`.
bool answers(const CoordinatorMessage& answer, const SiteMessage& request);

// Convert bytes to lower-case hexadecimal digits and back; throw DataError for other text.
std::string to_hex(std::string_view bytes);
std::string from_hex(std::string_view digits);

}  // namespace farstep
