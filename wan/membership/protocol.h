// The messages between the coordinator and the sites: one JSON object a message, in one frame,
// {"protocol": 3, "type": "arrive", ...the fields below...}. docs/protocol.md tells who waits for
// what.
//
// Each message lists its fields once, for reading, writing and documentation alike. A message with
// an unknown type, an unknown member or another protocol version is refused, never guessed at.
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep {

inline constexpr int64_t kProtocolVersion = 3;

// Which sync of a run: of one fragment of the model, in one outer round. They follow each other
// fragment by fragment, round by round.
struct SyncId {
  int64_t round = 1;     // from 1
  int64_t fragment = 0;  // from 0
  auto operator<=>(const SyncId&) const = default;
};

// "round 3", or "round 3, fragment 1" where there are several.
std::string text_of(const SyncId& sync, int64_t num_fragments);

// ---- from a site to the coordinator ----

// What a site brings when it joins.
struct JoinRequest {
  std::optional<Json> run;
  bool resume = false;
  std::vector<int64_t> resumable_syncs;
  Json facts = Json::object();
  Json profile;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "the site's own copy of the run, every default written out; null has none");
    visit("resume", resume, "the site means to continue from a checkpoint");
    visit("resumable_syncs", resumable_syncs,
          "numbers of syncs done, fragment by fragment, that it has checkpoints of");
    visit("facts", facts, "what must be equal at all sites: digest of the data, parameters, ...");
    visit("profile", profile, "what was measured of the site, for the plan; null if nothing was");
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
    visit("activity", activity, "what it does, in a word or two");
  }
};

// What a site brings to a sync, for the averaging weights: the work in its delta. And what it did
// in the round so far, and what it knows of its links, for the next plan.
struct Contribution {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t tokens = 0;
  int64_t round_steps = 0;
  int64_t micro_batch = 0;
  double step_seconds = 0;
  double overhead_seconds = 0;
  int64_t fragments = 1;
  double uplink_bits_per_second = 0;
  double rtt_seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("steps", steps, "local steps since the fragment was last applied", required(at_least(0)));
    visit("batch", batch, "sequences of an inner step", required(at_least(0)));
    visit("tokens", tokens, "tokens trained on in these steps", required(at_least(0)));
    visit("round_steps", round_steps, "local steps of the round so far", at_least(0));
    visit("micro_batch", micro_batch, "sequences of one forward and backward", at_least(0));
    visit("step_seconds", step_seconds, "what an inner step typically took; 0 if none was timed",
          at_least(0));
    visit("overhead_seconds", overhead_seconds,
          "the site's own time between the rounds' syncs that was not inner steps", at_least(0));
    visit("fragments", fragments, "fragments that the site syncs in the round", at_least(1));
    visit("uplink_bits_per_second", uplink_bits_per_second,
          "what the site is known to send to all peers together; 0 if that is not known",
          at_least(0));
    visit("rtt_seconds", rtt_seconds, "round trip to its farthest peer; 0 if it is not known",
          at_least(0));
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
    visit("generation", generation, "generation of the membership", kRequired);
    visit("round", round, "the round", kRequired);
    visit("fragment", fragment, "the fragment whose delta is taken", kRequired);
    visit("contribution", contribution, "what the site brings", kRequired);
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
    visit("generation", generation, "generation of the membership", kRequired);
    visit("round", round, "the round", kRequired);
    visit("fragment", fragment, "the fragment whose exchange is done", kRequired);
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

enum class Outcome { kDone, kInterrupted, kFailed };
std::span<const std::string_view> enum_names(Outcome);

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
    visit("generation", generation, "generation of the membership", kRequired);
    visit("start_syncs", start_syncs, "syncs done before; above 0 every site resumes from there",
          required(at_least(0)));
    visit("profiles", profiles, "what each site brought as its profile, in order of site id");
  }
};

struct RefusedMessage {
  static constexpr std::string_view kType = "refused";
  std::string message;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("message", message, "why the site may not take part", kRequired);
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
    visit("generation", generation, "generation of the membership", kRequired);
    visit("round", round, "the round", kRequired);
    visit("fragment", fragment, "the fragment whose exchange begins", kRequired);
    visit("contributions", contributions, "what each site brings, in order of site id", kRequired);
  }
};

struct CommittedMessage {
  static constexpr std::string_view kType = "committed";
  int64_t generation = 0;
  int64_t round = 0;
  int64_t fragment = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "generation of the membership", kRequired);
    visit("round", round, "the round", kRequired);
    visit("fragment", fragment, "the fragment that every site has", kRequired);
  }
};

struct PeerLostMessage {
  static constexpr std::string_view kType = "peer_lost";
  std::string site, reason;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "the site that is gone", kRequired);
    visit("reason", reason, "what happened to it", kRequired);
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
    visit("message", message, "what is wrong with a message of the site", kRequired);
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

// The frame of a message; text that is not UTF-8 is mended, not refused.
std::string encode(const SiteMessage& message);
std::string encode(const CoordinatorMessage& message);

// The message of a frame. Throws DataError if it is none of Farstep's messages at all, and
// ConfigError if it is one of another protocol version, of unknown type or with wrong members.
SiteMessage decode_site_message(const std::string& frame);
CoordinatorMessage decode_coordinator_message(const std::string& frame);

// Whether `answer` is what a site that sent `request` waits for.
bool answers(const CoordinatorMessage& answer, const SiteMessage& request);

// Bytes as lower-case hexadecimal digits, and back; throws DataError on other text.
std::string to_hex(std::string_view bytes);
std::string from_hex(std::string_view digits);

}  // namespace farstep
