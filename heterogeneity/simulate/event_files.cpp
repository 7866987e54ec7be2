// A simulated run has the same records as a real one, so that one report serves both. Each site's
// lines have a clock of their own, which its steps and spans move.
#include "heterogeneity/simulate/event_files.h"

#include <fstream>
#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/telemetry/recorder.h"

namespace farstep::heterogeneity {

namespace {

// Not the time of day: the same scenario and seed give the same bytes.
constexpr double kStartUnixSeconds = 946'684'800;  // 2000-01-01 00:00 UTC

// The lines of one site, with a clock of its own.
class Lines {
 public:
  Lines(std::string site, double start_seconds)
      : site_(std::move(site)), now_(kStartUnixSeconds + start_seconds) {}

  double now() const { return now_; }

  void add(const Event& event, double seconds = 0) {
    now_ += seconds;
    text_ += to_record({now_, site_, event}).dump() + "\n";
  }

  void add_span(SpanCause cause, int64_t round, double seconds) {
    // A cause that took no time leaves no record, as in a real run.
    if (seconds > 0) add(SpanEvent{cause, round, now_, seconds}, seconds);
  }

  std::string take() { return std::move(text_); }

 private:
  const std::string site_;
  double now_;
  std::string text_;
};

PlanEvent plan_event(int64_t round, const SitePlan& plan) {
  return {.round = round,
          .local_steps = plan.local_steps,
          .batch = plan.batch,
          .micro_batch = plan.micro_batch,
          .reason = plan.reason,
          .step_seconds = plan.step_seconds,
          .idle_seconds = plan.idle_seconds};
}

void add_sync(Lines& lines, int64_t round, bool trains, const SiteSync& sync) {
  const auto cause_of = [=](SpanCause cause) { return trains ? cause : SpanCause::kServe; };
  lines.add_span(cause_of(SpanCause::kWait), round, sync.exposed.wait);
  lines.add_span(cause_of(SpanCause::kWan), round, sync.exposed.exchange);
  lines.add_span(cause_of(SpanCause::kOuter), round, sync.exposed.outer);
  lines.add_span(cause_of(SpanCause::kWan), round, sync.exposed.vote);
  lines.add(SyncEvent{.round = round,
                      .fragment = sync.fragment,
                      .wait_seconds = sync.all.wait,
                      .wan_seconds = sync.all.wan(),
                      .exposed_wait_seconds = sync.exposed.wait,
                      .exposed_wan_seconds = sync.exposed.wan(),
                      .bytes_sent = sync.sent_bytes});
}

}  // namespace

EventFiles::EventFiles(std::filesystem::path folder, const Scenario& scenario, std::string version)
    : folder_(std::move(folder)),
      scenario_(scenario),
      version_(std::move(version)),
      has_begun_(scenario.sites.size()) {
  make_folder(folder_);
  if (!std::filesystem::is_empty(folder_)) {
    throw ConfigError(fmt::format("{}: is not empty; name a new folder for the simulated events",
                                  folder_.string()));
  }
  for (const auto& site : scenario_.sites) names_.push_back(site.name);
}

std::string EventFiles::first_lines(const SimulatedRound& round, const SiteRound& site) const {
  Lines lines(names_[site.site], site.start_seconds);
  RunEvent start;
  start.version = version_;
  start.run = scenario_.name + " (simulated)";
  start.site_id = static_cast<int64_t>(site.site);
  start.sites = names_;
  for (const auto& device : scenario_.sites[site.site].profile->devices) {
    start.devices.push_back(device.name);
  }
  start.parameters = *scenario_.parameters;
  start.sequence_length = *scenario_.sequence_length;
  start.rounds = scenario_.rounds;
  start.generation = round.generation;
  start.trains = scenario_.sites[site.site].trains;
  start.reads_data =
      start.trains && (!scenario_.strategy.scatter || site.site == scenario_.master());
  // A site that joins later begins there.
  start.start_round = round.round - 1;
  lines.add(start);
  return lines.take();
}

std::string EventFiles::round_lines(const SimulatedRound& round, const SiteRound& site) const {
  Lines lines(names_[site.site], site.start_seconds);
  const bool trains = site.plan.trains();
  // Both are of the round before, as in a real run.
  lines.add_span(SpanCause::kEvaluate, round.round - 1, site.evaluate_seconds);
  lines.add_span(SpanCause::kCheckpoint, round.round - 1, site.checkpoint_seconds);
  lines.add(plan_event(round.round, site.measuring_plan.value_or(site.plan)));
  StepEvent step;
  step.round = round.round;
  int64_t tokens = 0;
  auto sync = site.syncs.begin();
  for (const double seconds : site.step_seconds) {
    ++step.step;
    step.start = lines.now();
    step.seconds = seconds;
    const bool is_measuring = site.measuring_plan && step.step <= site.plan.steps_before;
    step.tokens =
        (is_measuring ? *site.measuring_plan : site.plan).batch * *scenario_.sequence_length;
    tokens += step.tokens;
    if (trains) lines.add(step, seconds);
    if (site.measuring_plan && step.step == site.plan.steps_before) {
      lines.add_span(trains ? SpanCause::kWait : SpanCause::kServe, round.round,
                     site.measuring_wait_seconds);
      lines.add(plan_event(round.round, site.plan));
    }
    // Several fragments may be applied after one step.
    for (; sync != site.syncs.end() && sync->applied_after == step.step; ++sync) {
      add_sync(lines, round.round, trains, *sync);
    }
  }
  RoundEvent commit;
  commit.round = round.round;
  commit.generation = round.generation;
  commit.local_steps = site.steps();
  commit.batch = site.plan.batch;
  commit.micro_batch = site.plan.micro_batch;
  commit.tokens = tokens;
  commit.averaging_weight = site.syncs.back().averaging_weight;
  for (const auto& of_fragment : site.syncs) {
    commit.wan_bytes_sent += of_fragment.sent_bytes;
    commit.wan_bytes_received += of_fragment.received_bytes;
  }
  // No tensors are simulated; the record only needs the form of a hash.
  commit.theta_hash = checksum_text(0);
  lines.add(commit);
  if (round.round == scenario_.rounds) lines.add(EndEvent{});
  return lines.take();
}

void EventFiles::write(const SimulatedRound& round) {
  for (const auto& site : round.sites) {
    const auto folder = folder_ / names_[site.site];
    const auto file = folder / kEventFile;
    const bool has_begun = has_begun_[site.site];
    if (!has_begun) make_folder(folder);
    // Opened for each round: a thousand sites would exceed the limit of open files.
    std::ofstream out(file, std::ios::binary | std::ios::app);
    if (!has_begun) out << first_lines(round, site);
    out << round_lines(round, site);
    has_begun_[site.site] = true;
    if (!out.flush()) throw DataError(fmt::format("{}: cannot be written", file.string()));
  }
}

}  // namespace farstep::heterogeneity
