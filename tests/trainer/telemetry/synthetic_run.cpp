#include "tests/trainer/telemetry/synthetic_run.h"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace farstep {

namespace {

constexpr int64_t kTokensOfStep = 4 * 1024;

// A loss that falls, a little differently at every site, with the noise of a batch.
double loss_at(double rounds_done, int64_t step, std::size_t site) {
  const double noise = 0.15 * std::sin(double(step) * 0.7 + double(site)) +
                       0.2 * std::sin(double(step * step % 1009) + double(site));
  return 3.2 + (4.5 + 0.1 * double(site)) * std::exp(-0.45 * rounds_done) + noise;
}

}  // namespace

double SyntheticRun::training_seconds(std::size_t site) const {
  return static_cast<double>(steps) * step_seconds[site];
}

double SyntheticRun::slowest_seconds() const {
  return static_cast<double>(steps) * *std::max_element(step_seconds.begin(), step_seconds.end());
}

double SyntheticRun::round_seconds() const {
  return static_cast<double>(steps) * data_seconds + slowest_seconds() + wan_seconds +
         outer_seconds + evaluate_seconds + checkpoint_seconds;
}

std::vector<Record> SyntheticRun::records(std::size_t site, double clock_offset_seconds) const {
  std::vector<Record> all;
  double now = start - clock_offset_seconds;
  const auto add = [&](Event event) { all.push_back({now, site_name(site), std::move(event)}); };
  const auto span = [&](SpanCause cause, int64_t round, double seconds) {
    const double began = now;
    now += seconds;
    add(SpanEvent{cause, round, began, seconds});
  };
  RunEvent run;
  run.version = "0.1.0";
  run.run = name;
  run.site_id = static_cast<int64_t>(site);
  for (std::size_t i = 0; i < step_seconds.size(); ++i) run.sites.push_back(site_name(i));
  run.devices = {"4 GPUs"};
  run.parameters = 214'983'680;
  run.sequence_length = 1024;
  run.rounds = rounds;
  run.clock_offset_seconds = clock_offset_seconds;
  add(run);
  for (int64_t round = 1; round <= rounds; ++round) {
    add(PlanEvent{round, steps, 4, 4, "as asked", step_seconds[site], 0.0});
    double loss_sum = 0;
    for (int64_t step = 1; step <= steps; ++step) {
      now += data_seconds;
      const double began = now;
      now += step_seconds[site];
      const double done = double(round - 1) + double(step) / double(steps);
      const double loss = loss_at(done, step + round * steps, site);
      loss_sum += loss;
      add(StepEvent{round,
                    step,
                    began,
                    step_seconds[site],
                    data_seconds,
                    loss,
                    0.8,
                    4e-4,
                    kTokensOfStep,
                    {}});
    }
    span(SpanCause::kWait, round, wait_seconds(site));
    span(SpanCause::kWan, round, wan_seconds);
    span(SpanCause::kOuter, round, outer_seconds);
    // Half a second of every exchange is hidden behind training.
    add(SyncEvent{round, 0, wait_seconds(site), wan_seconds + 0.5, wait_seconds(site), wan_seconds,
                  1'290'000'000});
    add(RoundEvent{round, 1, steps, 4, 4, steps * kTokensOfStep, 0.25, "0123456789abcdef",
                   1'290'000'000, 1'290'000'000, 1'301'000'000, 1'301'000'000,
                   loss_sum / double(steps)});
    span(SpanCause::kEvaluate, round, evaluate_seconds);
    add(EvaluationEvent{round, 1000 * loss_at(double(round), 0, 0), 1000});
    span(SpanCause::kCheckpoint, round, checkpoint_seconds);
    add(CheckpointEvent{round, 0, "round", 1000});
  }
  add(EndEvent{Outcome::kDone, ""});
  return all;
}

void SyntheticRun::write(const std::filesystem::path& folder) const {
  for (std::size_t site = 0; site < step_seconds.size(); ++site) {
    write_events(folder / site_name(site) / "events.jsonl", records(site, 0.5 * double(site)));
  }
}

void write_events(const std::filesystem::path& file, const std::vector<Record>& records) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file);
  for (const auto& record : records) out << to_record(record).dump() << "\n";
}

}  // namespace farstep
