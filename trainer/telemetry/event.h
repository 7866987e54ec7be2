// The event record of a site: one JSON object a line, the only source of every figure that Farstep
// shows. docs/events.md describes it for other programs.
//
// Times are unix seconds of the site's own clock. Rounds and steps count from 1, fragments from 0.
// The field lists drive writing, reading and docs/reference/events.md. Values only; thread-safe.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/base/outcome.h"
#include "trainer/config/json_fields.h"
#include "trainer/telemetry/run_event.h"
#include "trainer/telemetry/sync_events.h"

namespace farstep {

// Why a site had no training work. Computing is not a cause; step events record it. kServe is no
// idle time: it is the work of a site that serves alone.
enum class SpanCause { kWait, kWan, kOuter, kData, kCheckpoint, kEvaluate, kRecovery, kServe };
inline constexpr std::size_t kSpanCauses = 8;
std::span<const std::string_view> enum_names(SpanCause);

struct PlanEvent {
  static constexpr std::string_view kName = "plan";
  static constexpr std::string_view kDoc =
      "a round begins, or goes on after a resume: the work of the site in it";
  int64_t round = 0, local_steps = 0, batch = 0, micro_batch = 0;
  std::string reason = {};
  std::optional<double> step_seconds = {}, idle_seconds = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the round", required(at_least(1)));
    visit("local_steps", local_steps, "inner steps in it; about, where a deadline ends it",
          required(at_least(1)));
    visit("batch", batch, "sequences of one of them; 0: the site serves alone",
          required(at_least(0)));
    visit("micro_batch", micro_batch, "sequences of one forward and backward",
          required(at_least(0)));
    visit("reason", reason, "why the site has these steps and this batch", kRequired);
    visit("step_seconds", step_seconds, "predicted time of a step; null if it is not known",
          required(at_least(0)));
    visit("idle_seconds", idle_seconds,
          "predicted wait for the peers; null if a site's steps are not known",
          required(at_least(0)));
  }
};

struct StepEvent {
  static constexpr std::string_view kName = "step";
  static constexpr std::string_view kDoc = "one inner step";
  int64_t round = 0, step = 0;
  double start = 0, seconds = 0, data_seconds = 0;
  std::optional<double> loss = {}, gradient_norm = {}, learning_rate = {};
  int64_t tokens = 0;
  std::vector<double> device_seconds = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "its round", required(at_least(1)));
    visit("step", step, "its number in the round", required(at_least(1)));
    visit("start", start, "when it began to compute, unix seconds", kRequired);
    visit("seconds", seconds, "how long it computed, emulated slowness included",
          required(at_least(0)));
    visit("data_seconds", data_seconds, "how long it waited for its batch before that",
          required(at_least(0)));
    visit("loss", loss, "mean loss of its tokens, before the update; null in a simulation",
          kRequired);
    visit("gradient_norm", gradient_norm,
          "global norm of the gradient, before clipping; null in a simulation, and with "
          "data_parallel_master at the other sites, which do not get the gradient",
          required(at_least(0)));
    visit("learning_rate", learning_rate, "learning rate that it used; null in a simulation",
          required(at_least(0)));
    visit("tokens", tokens, "tokens that it was trained on", required(at_least(0)));
    visit("device_seconds", device_seconds,
          "how long each device computed of that; empty where one device did all the time",
          kRequired);
  }
};

struct SpanEvent {
  static constexpr std::string_view kName = "span";
  static constexpr std::string_view kDoc = "a time without training work";
  SpanCause cause = SpanCause::kWait;
  int64_t round = 0;
  double start = 0, seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("cause", cause, "why there was no training work", kRequired);
    visit("round", round, "the round it belongs to; 0 is before the first", required(at_least(0)));
    visit("start", start, "when it began, unix seconds", kRequired);
    visit("seconds", seconds, "how long it was", required(at_least(0)));
  }
};

struct RoundEvent {
  static constexpr std::string_view kName = "round";
  static constexpr std::string_view kDoc = "a committed outer round";
  int64_t round = 0, generation = 0, local_steps = 0, batch = 0, micro_batch = 0, tokens = 0;
  double averaging_weight = 0;
  std::string theta_hash;
  int64_t wan_bytes_sent = 0, wan_bytes_received = 0;
  int64_t socket_bytes_sent = 0, socket_bytes_received = 0;
  std::optional<double> train_loss = {};
  std::optional<double> gradient_squared_norm = {}, gradient_variance = {}, noise_scale = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "its number", required(at_least(1)));
    visit("generation", generation, "version of the membership that committed it",
          required(at_least(0)));
    visit("local_steps", local_steps, "this site's inner steps in it", required(at_least(0)));
    visit("batch", batch, "sequences of one of them", required(at_least(0)));
    visit("micro_batch", micro_batch, "sequences of one forward and backward",
          required(at_least(0)));
    visit("tokens", tokens, "tokens that this site was trained on in it", required(at_least(0)));
    visit(
        "averaging_weight", averaging_weight,
        "this site's coefficient in the mean delta, of its last fragment; 0 if no mean was applied",
        kRequired);
    visit("theta_hash", theta_hash, "checksum of theta_global after it, 16 hexadecimal digits",
          kRequired);
    visit("wan_bytes_sent", wan_bytes_sent, "payload sent to peers, as Farstep counted it",
          required(at_least(0)));
    visit("wan_bytes_received", wan_bytes_received, "payload received from peers, likewise",
          required(at_least(0)));
    visit("socket_bytes_sent", socket_bytes_sent,
          "bytes sent on the connections to peers, as the kernel counted them",
          required(at_least(0)));
    visit("socket_bytes_received", socket_bytes_received, "bytes received on them, likewise",
          required(at_least(0)));
    visit("train_loss", train_loss,
          "mean loss of this site's steps in it; null in a simulation, "
          "and where the site serves alone",
          kRequired);
    visit(
        "gradient_squared_norm", gradient_squared_norm,
        "estimate by all sites' steps of the squared norm of the mean gradient, below 0 by chance; "
        "null if each step of each site had one micro-batch on one device, and in a simulation",
        kRequired);
    visit("gradient_variance", gradient_variance,
          "estimate of the variance of one sequence's gradient, likewise", kRequired);
    visit(
        "noise_scale", noise_scale,
        "gradient_variance by gradient_squared_norm, each averaged over the last rounds: the batch "
        "of all sites, in sequences, beyond which a larger one brings little; null if not known",
        required(at_least(0)));
  }
};

struct RiseEvent {
  static constexpr std::string_view kName = "rise";
  static constexpr std::string_view kDoc =
      "the validation loss has risen far; every member records it";
  int64_t round = 0, validated_round = 0;
  double loss = 0;
  int64_t best_round = 0;
  double best_loss = 0;
  bool stops = false;
  std::optional<int64_t> back_to_round = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the round at whose end all sites knew it", required(at_least(0)));
    visit("validated_round", validated_round, "rounds that theta_global had done when validated",
          required(at_least(0)));
    visit("loss", loss, "that validation's loss", kRequired);
    visit("best_round", best_round, "rounds done at the best of the validations before",
          required(at_least(0)));
    visit("best_loss", best_loss, "that one's loss", kRequired);
    visit("stops", stops, "whether the run ends with it", kRequired);
    visit("back_to_round", back_to_round,
          "the round whose weights all sites train on from; null: they do not go back",
          required(at_least(0)));
  }
};

struct EvaluationEvent {
  static constexpr std::string_view kName = "evaluation";
  static constexpr std::string_view kDoc = "a site's share of a validation of theta_global";
  int64_t round = 0;
  double loss_sum = 0;
  int64_t tokens = 0;
  std::optional<int64_t> hits = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "rounds that theta_global had done; 0 is the model at the start",
          required(at_least(0)));
    visit("loss_sum", loss_sum, "sum of the losses of this site's share of the tokens", kRequired);
    visit("tokens", tokens, "tokens of that share", required(at_least(0)));
    visit("hits", hits,
          "of these, how many the model finds the likeliest; null if it does not count them",
          required(at_least(0)));
  }
};

struct CheckpointEvent {
  static constexpr std::string_view kName = "checkpoint";
  static constexpr std::string_view kDoc = "a checkpoint that is whole on the disk";
  int64_t round = 0, step = 0;
  std::string folder;
  int64_t bytes = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "rounds done", required(at_least(0)));
    visit("step", step, "steps done of the round after those", required(at_least(0)));
    visit("folder", folder, "where it is", kRequired);
    visit("bytes", bytes, "size of its files", required(at_least(0)));
  }
};

struct EndEvent {
  static constexpr std::string_view kName = "end";
  static constexpr std::string_view kDoc = "the process ends in good order";
  Outcome outcome = Outcome::kDone;
  std::string message;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("outcome", outcome, "how it ends", kRequired);
    visit("message", message, "why, in words; empty when it is done");
  }
};

using Event = std::variant<RunEvent, PlanEvent, StepEvent, SpanEvent, SyncEvent, RoundEvent,
                           LinkEvent, SyncChangeEvent, ViewEvent, OutlierEvent, RiseEvent,
                           EvaluationEvent, CheckpointEvent, EndEvent>;

// One line of the file: an event, its site, and the unix time at which it was written, after its
// end.
struct Record {
  double time = 0;
  std::string site;
  Event event;
};

// Returns {"event":"step","time":...,"site":"node1", ...the event's fields...}. Throws
// InternalError if a number is not finite, because JSON has no such numbers.
Json to_record(const Record& record);

// Returns the record in `line`. Throws DataError with `file`, `line_number` (from 1) and the fault:
// not JSON, an unknown event, or a missing, unknown or impossible field.
Record parse_record(std::string_view line, const std::string& file, int64_t line_number);

}  // namespace farstep
