// What a site sends to the coordinator. Each message lists its fields once, for reading, writing
// and documentation. Values; thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heterogeneity/knowledge/round_timing.h"
#include "outer_optimizer/schedule/delta_figures.h"
#include "outer_optimizer/schedule/holding.h"
#include "outer_optimizer/schedule/work.h"
#include "trainer/base/outcome.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep::wan {

// The most that any count of a message may be: far beyond every run, and sums of it stay in range.
inline constexpr double kMostCount = 1e15;
// The highest term or generation that a site may name. A coordinator may take one above it, which
// is a count still.
inline constexpr double kMostTerm = 1e12;

// Of a transfer's token: it is sent to whatever address its message names, where any other text
// could be a command to some server.
inline constexpr Rules kToken = required(hexadecimal(32));

// Identifies a sync of a run: of one fragment of the model, in one outer round. Syncs follow each
// other fragment by fragment, round by round.
struct SyncId {
  int64_t round = 1;     // from 1
  int64_t fragment = 0;  // from 0
  auto operator<=>(const SyncId&) const = default;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the round", required(in_range(0, kMostCount)));
    visit("fragment", fragment, "the fragment", required(in_range(0, kMostCount)));
  }
};

// Comes before the first sync of a run if the planner knows nothing of the sites. Sites arrive and
// vote as at any sync; they report their step times and exchange nothing else.
inline constexpr SyncId kMeasuringSync{.round = 0, .fragment = 0};

// Returns "the measuring sync", "round 3", or "round 3, fragment 1" if there are several fragments.
std::string text_of(const SyncId& sync, int64_t num_fragments);

// Whether a site goes on from its checkpoints.
enum class Resume { kNever, kAlways, kAuto };
std::span<const std::string_view> enum_names(Resume);

// A state from which a site can go on: that of its checkpoint.
struct OfferedState {
  int64_t syncs = 0;
  std::string theta_hash;
  std::optional<int64_t> round = {};
  std::vector<std::string> members = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("syncs", syncs, "how many are completed", required(in_range(0, kMostCount)));
    visit("theta_hash", theta_hash, "checksum of theta_global after them", kRequired);
    visit("round", round, "the newest, if no sync of the next one is completed",
          in_range(0, kMostCount));
    visit("members", members, "that took part in the last sync; empty: unknown");
  }
};

// The data that a site brings when it joins.
struct JoinRequest {
  std::optional<Json> run;
  Resume resume = Resume::kNever;
  std::vector<OfferedState> states;
  Json facts = Json::object();
  Json profile;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "the site's own copy of the run, every default written out; null has none");
    visit("resume", resume,
          "always: the site goes on from a checkpoint; auto: it has none and begins anew, unless "
          "the others go on");
    visit("states", states, "those of its checkpoints");
    visit("facts", facts,
          "facts that must be equal at all sites that have them: digest of the data, ...");
    visit("profile", profile, "the site's profile, for the plan; null if it has none");
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

// A site with which a run began.
struct FirstSite {
  std::string site;
  Json profile;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "its name", kRequired);
    visit("profile", profile, "its profile by `farstep profile`; null: without one");
  }
};

// What a member knows of its run: enough for a coordinator to go on with it.
struct RunMemory {
  std::vector<std::string> members;
  std::vector<FirstSite> first_sites;
  std::vector<PutMessage> values;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("members", members, "of its generation, in their order", kRequired);
    visit("first_sites", first_sites, "with which the run began", required(at_least(1)));
    visit("values", values, "that it put or got before the first commit");
  }
};

struct RegisterMessage : JoinRequest {
  static constexpr std::string_view kType = "register";
  std::string site;
  int64_t term = 0;
  int64_t generation = 0;
  int64_t committed_round = -1;
  int64_t committed_fragment = 0;
  std::optional<RunMemory> memory;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "name of the site, as in the run", kRequired);
    visit("term", term, "newest term of a coordinator that the site knows; 0: none",
          in_range(0, kMostTerm));
    visit("generation", generation,
          "generation that the site is a member of, if it registers again; 0: it begins",
          in_range(0, kMostTerm));
    visit("committed_round", committed_round,
          "round of the newest committed sync that it knows; -1: none", in_range(-1, kMostCount));
    visit("committed_fragment", committed_fragment, "its fragment", in_range(0, kMostCount));
    visit("memory", memory, "of a member that registers again: what it knows of the run");
    JoinRequest::fields(visit);
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

// A newcomer in a begun run asks for the run's state. It listens at this address, and knows the
// donor by the token.
struct FetchMessage {
  static constexpr std::string_view kType = "fetch";
  std::string ip;
  int64_t port = 0;
  std::string token;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("ip", ip, "IP address at which the newcomer waits for the donor");
    visit("port", port, "its TCP port; 0: the newcomer cannot be connected to, and connects itself",
          required(in_range(0, 65535)));
    visit("token", token, "what the donor says first; another one at each request", kToken);
  }
  bool operator==(const FetchMessage&) const = default;
};

struct HeartbeatMessage {
  static constexpr std::string_view kType = "heartbeat";
  double sent_seconds = 0;
  int64_t round = 0;
  int64_t step = 0;
  std::string activity;
  int64_t generation = 0;
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sent_seconds", sent_seconds, "the site's unix time, echoed in the answer", kRequired);
    visit("term", term, "newest term of a coordinator that the site knows",
          required(in_range(0, kMostTerm)));
    visit("generation", generation, "newest generation that the site knows",
          required(in_range(0, kMostCount)));
    visit("round", round, "outer round that the site is in");
    visit("step", step, "inner steps of the round that it has done");
    visit("activity", activity, "its activity, in a word or two");
  }
};

// The largest number of a delta, which JSON's readers keep as it is.
inline constexpr int64_t kMostDelta = (int64_t{1} << 53) - 1;

// What a site brings to a sync: the work in its delta, for the averaging weights, and the timing of
// its round, for the next plan. Membership hands all of it on. It reads only who goes on, and who
// has the fastest uplink.
struct Contribution {
  outer_optimizer::Work work = {};
  heterogeneity::RoundTiming timing = {};
  int64_t fragments = 1;
  // Drawn for each delta, so that another process's in the site's place has another one.
  int64_t delta = 0;
  std::optional<outer_optimizer::Holding> holding = {};
  std::optional<outer_optimizer::DeltaFigures> figures = {};

  // Whether the site has trained in the round, and goes on after it.
  bool goes_on() const { return work.steps > 0 && !timing.is_leaving; }

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("work", work, "the training that the delta stands for", kRequired);
    visit("timing", timing, "the site's round so far, and its links", kRequired);
    visit("fragments", fragments, "fragments that the site syncs in the round",
          in_range(1, kMostCount));
    visit("delta", delta, "the number of its delta; 0: it has none", in_range(0, kMostDelta));
    visit("holding", holding,
          "in a sync that the site has begun before: what it has of it; null: it has not");
    visit("figures", figures, "of its delta; null: nobody is to judge it");
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

// The most bytes of a RecordsMessage of several lines, and of one that has a single long line.
inline constexpr std::size_t kMostRecordsBytes = 64 * 1024;
inline constexpr std::size_t kMostRecordBytes = 1024 * 1024;

// The next whole lines of the site's record file, and where they begin in it.
struct RecordsMessage {
  static constexpr std::string_view kType = "records";
  int64_t position = 0;
  std::string text;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("position", position, "bytes of the file before them", required(in_range(0, kMostCount)));
    visit("text", text, "whole lines of the file, 64 KiB at most; or one line of up to 1 MiB",
          kRequired);
  }
};

// An exchange has failed, or stands still.
struct SuspectMessage {
  static constexpr std::string_view kType = "suspect";
  int64_t generation = 0;
  std::string site;
  bool is_standing = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("generation", generation, "generation whose exchange has failed",
          required(in_range(0, kMostCount)));
    visit("site", site, "the site that the sender lost its connection to; empty if unknown");
    visit("is_standing", is_standing,
          "the connection to the site has not broken, and carries nothing; no answer");
  }
};

// A donor has the state for a newcomer, and sends it from now on.
struct OfferMessage {
  static constexpr std::string_view kType = "offer";
  std::string token;
  int64_t round = 0;
  double seconds = 0;
  std::string endpoint = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("token", token, "of the newcomer's fetch", kToken);
    visit("round", round, "the newest round whose syncs the state has",
          required(in_range(0, kMostCount)));
    visit("seconds", seconds, "how long the transfer takes by the donor's figures; 0: it has none",
          at_least(0));
    visit("endpoint", endpoint,
          "where a newcomer that nobody can connect to reaches the donor; empty: nowhere");
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

using SiteMessage = std::variant<RegisterMessage, PutMessage, GetMessage, FetchMessage,
                                 HeartbeatMessage, ArriveMessage, VoteMessage, MetricsMessage,
                                 RecordsMessage, SuspectMessage, OfferMessage, LeaveMessage>;

}  // namespace farstep::wan
