// The event record: what a site writes down while it trains, one JSON object a line, and the only
// source of every figure that Farstep shows. docs/events.md describes it for other programs.
//
// Times are unix seconds of the site's own clock; rounds and steps are counted from 1,
// fragments from 0. The field
// lists drive writing, reading and the documentation. Values only; thread-safe.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/config/run_config.h"

namespace farstep {

// What a site did while it had no training work. Computing is no cause: the steps tell it.
enum class SpanCause { kWait, kWan, kOuter, kData, kCheckpoint, kEvaluate, kRecovery };
inline constexpr std::size_t kSpanCauses = 7;
std::span<const std::string_view> enum_names(SpanCause);

enum class EndOutcome { kDone, kInterrupted, kPeerLost, kFailed };
std::span<const std::string_view> enum_names(EndOutcome);

// A process of the site starts to train, or goes on after a resume.
struct RunEvent {
  static constexpr std::string_view kName = "run";
  std::string version, run;
  int64_t site_id = 0;
  std::vector<std::string> sites, devices;
  int64_t parameters = 0, sequence_length = 0, rounds = 0, generation = 0;
  int64_t start_round = 0, start_step = 0, start_fragments = 0;
  double clock_offset_seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("version", version, "version of Farstep", kRequired);
    visit("run", run, "name of the run", kRequired);
    visit("site_id", site_id, "the site's place in `sites`, from 0", required(at_least(0)));
    visit("sites", sites, "names of all sites of the run, in the order of their ids",
          required(at_least(1)));
    visit("devices", devices, "the site's devices, each as text", required(at_least(1)));
    visit("parameters", parameters, "parameters of the model", required(at_least(0)));
    visit("sequence_length", sequence_length, "tokens of one sequence", required(at_least(1)));
    visit("rounds", rounds, "outer rounds that the run is to have", required(at_least(0)));
    visit("generation", generation, "version of the membership", required(at_least(0)));
    visit("start_round", start_round, "rounds that were done before this start",
          required(at_least(0)));
    visit("start_step", start_step, "steps of the round after those that were done before",
          required(at_least(0)));
    visit("start_fragments", start_fragments,
          "fragments of the round after those that were applied before", required(at_least(0)));
    visit("clock_offset_seconds", clock_offset_seconds,
          "add it to this site's times to get the coordinator's", kRequired);
  }
};

// A round begins, or goes on after a resume: what the site has to do in it.
struct PlanEvent {
  static constexpr std::string_view kName = "plan";
  int64_t round = 0, local_steps = 0, batch = 0, micro_batch = 0;
  std::string reason = {};
  std::optional<double> step_seconds = {}, idle_seconds = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the round", required(at_least(1)));
    visit("local_steps", local_steps, "inner steps in it; about, where a deadline ends it",
          required(at_least(1)));
    visit("batch", batch, "sequences of one of them", required(at_least(1)));
    visit("micro_batch", micro_batch, "sequences of one forward and backward",
          required(at_least(1)));
    visit("reason", reason, "why the site has these steps and this batch", kRequired);
    visit("step_seconds", step_seconds, "predicted time of a step; null if it is not known",
          required(at_least(0)));
    visit("idle_seconds", idle_seconds,
          "predicted wait for the peers; null if a site's steps are not known",
          required(at_least(0)));
  }
};

// One inner step.
struct StepEvent {
  static constexpr std::string_view kName = "step";
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
          "global norm of the gradient, before clipping; null in a simulation",
          required(at_least(0)));
    visit("learning_rate", learning_rate, "learning rate that it used; null in a simulation",
          required(at_least(0)));
    visit("tokens", tokens, "tokens that it was trained on", required(at_least(0)));
    visit("device_seconds", device_seconds,
          "how long each device computed of that; empty where one device did all the time",
          kRequired);
  }
};

// A time without training work.
struct SpanEvent {
  static constexpr std::string_view kName = "span";
  SpanCause cause = SpanCause::kWait;
  int64_t round = 0;
  double start = 0, seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("cause", cause, "why there was none", kRequired);
    visit("round", round, "the round it belongs to; 0 is before the first", required(at_least(0)));
    visit("start", start, "when it began, unix seconds", kRequired);
    visit("seconds", seconds, "how long it was", required(at_least(0)));
  }
};

// A committed sync of one fragment of the model.
struct SyncEvent {
  static constexpr std::string_view kName = "sync";
  int64_t round = 0, fragment = 0;
  double wait_seconds = 0, wan_seconds = 0;
  double exposed_wait_seconds = 0, exposed_wan_seconds = 0;
  int64_t bytes_sent = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "its round", required(at_least(1)));
    visit("fragment", fragment, "its fragment, from 0", required(at_least(0)));
    visit("wait_seconds", wait_seconds,
          "from the delta's being taken until all sites had taken theirs", required(at_least(0)));
    visit("wan_seconds", wan_seconds, "from then until all sites had the mean",
          required(at_least(0)));
    visit("exposed_wait_seconds", exposed_wait_seconds,
          "the part of wait_seconds in which the site did not train", required(at_least(0)));
    visit("exposed_wan_seconds", exposed_wan_seconds, "the same part of wan_seconds",
          required(at_least(0)));
    visit("bytes_sent", bytes_sent, "payload sent to peers, as Farstep counted it",
          required(at_least(0)));
  }
};

// A committed outer round.
struct RoundEvent {
  static constexpr std::string_view kName = "round";
  int64_t round = 0, generation = 0, local_steps = 0, batch = 0, micro_batch = 0, tokens = 0;
  double averaging_weight = 0;
  std::string theta_hash;
  int64_t wan_bytes_sent = 0, wan_bytes_received = 0;
  int64_t socket_bytes_sent = 0, socket_bytes_received = 0;
  std::optional<double> train_loss = {};

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
    visit("train_loss", train_loss, "mean loss of this site's steps in it; null in a simulation",
          kRequired);
  }
};

// The link to a peer in a committed outer round, or all links of the site together.
struct LinkEvent {
  static constexpr std::string_view kName = "link";
  int64_t round = 0;
  std::optional<std::string> peer = {};
  int64_t bytes_sent = 0, bytes_received = 0, socket_bytes_sent = 0, retransmitted_bytes = 0;
  double sending_seconds = 0;
  std::optional<double> bits_per_second = {}, rtt_seconds = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "its round", required(at_least(1)));
    visit("peer", peer, "the other site; null: all peers together", kRequired);
    visit("bytes_sent", bytes_sent, "payload sent to it, as Farstep counted it",
          required(at_least(0)));
    visit("bytes_received", bytes_received, "payload received from it, likewise",
          required(at_least(0)));
    visit("socket_bytes_sent", socket_bytes_sent,
          "bytes sent on the connections to it, as the kernel counted them", required(at_least(0)));
    visit("retransmitted_bytes", retransmitted_bytes, "bytes that had to be sent again",
          required(at_least(0)));
    visit("sending_seconds", sending_seconds, "time in which something was being sent to it",
          required(at_least(0)));
    visit("bits_per_second", bits_per_second,
          "what the link is known to carry; null if nothing has told", required(at_least(0)));
    visit("rtt_seconds", rtt_seconds,
          "round trip at the end of the round, the longest one of all; null if not known",
          required(at_least(0)));
  }
};

// The sites change how they sync.
struct SyncChangeEvent {
  static constexpr std::string_view kName = "sync_change";
  int64_t round = 0;
  CodecKind codec = CodecKind::kFp32;
  int64_t fragments = 1, delay_steps = 0;
  std::vector<double> shares = {};
  std::string reason = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the first round that is synced so", required(at_least(1)));
    visit("codec", codec, "how values travel", kRequired);
    visit("fragments", fragments, "parts of the model that are synced one after the other",
          required(at_least(1)));
    visit("delay_steps", delay_steps,
          "inner steps between sending a delta and applying the mean, of a site that takes the "
          "base steps",
          required(at_least(0)));
    visit("shares", shares, "what each site adds up, by site id; empty: as the run file says",
          kRequired);
    visit("reason", reason, "why", kRequired);
  }
};

// A site's share of a validation of theta_global.
struct EvaluationEvent {
  static constexpr std::string_view kName = "evaluation";
  int64_t round = 0;
  double loss_sum = 0;
  int64_t tokens = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "rounds that theta_global had done; 0 is the model at the start",
          required(at_least(0)));
    visit("loss_sum", loss_sum, "sum of the losses of this site's share of the tokens", kRequired);
    visit("tokens", tokens, "tokens of that share", required(at_least(0)));
  }
};

// A checkpoint that is whole on the disk.
struct CheckpointEvent {
  static constexpr std::string_view kName = "checkpoint";
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

// The process ends in good order.
struct EndEvent {
  static constexpr std::string_view kName = "end";
  EndOutcome outcome = EndOutcome::kDone;
  std::string message;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("outcome", outcome, "how it ends", kRequired);
    visit("message", message, "why, in words; empty when it is done");
  }
};

using Event = std::variant<RunEvent, PlanEvent, StepEvent, SpanEvent, SyncEvent, RoundEvent,
                           LinkEvent, SyncChangeEvent, EvaluationEvent, CheckpointEvent, EndEvent>;

// One line of the file: an event, who wrote it, and when (unix seconds, the event being over).
struct Record {
  double time = 0;
  std::string site;
  Event event;
};

// {"event":"step","time":...,"site":"node1", then the event's fields}. Throws InternalError if a
// number is not finite, as JSON cannot hold it.
Json to_record(const Record& record);

// The record that `line` holds. Throws DataError with `file`, `line_number` (from 1) and what is
// wrong: not JSON, an unknown event, a missing, unknown or impossible field.
Record parse_record(std::string_view line, const std::string& file, int64_t line_number);

}  // namespace farstep
