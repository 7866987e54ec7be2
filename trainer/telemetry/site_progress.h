// A site's position in its run and its present activity, from its events alone.
//
// Events report what has ended. The present activity follows from the order of a round. Not
// thread-safe.
#pragma once

#include <optional>
#include <string>

#include "trainer/telemetry/event.h"

namespace farstep {

enum class SiteActivity { kStarting, kTraining, kServing, kWaiting, kSending, kNextRound, kEnded };

class SiteProgress {
 public:
  explicit SiteProgress(std::string site) : site_(std::move(site)) {}

  // Processes the site's next record.
  void update(const Record& record);

  const std::string& site() const { return site_; }
  SiteActivity activity() const { return activity_; }
  // Returns "training", "waiting", "sending", "next round", or how it ended.
  std::string activity_text() const;
  int64_t rounds() const { return run_.rounds; }                   // of the whole run
  int64_t round() const { return round_; }                         // the present one, from 1
  int64_t step() const { return step_; }                           // steps done in it
  int64_t local_steps() const { return local_steps_; }             // steps planned for it
  std::optional<double> loss() const { return loss_; }             // of the last step
  double tokens_per_second() const { return tokens_per_second_; }  // while training, smoothed
  const std::string& unit() const { return run_.unit; }            // what its tokens count
  double waited_seconds() const { return waited_seconds_; }        // for peers, in this round
  // Returns the completed share of the run, 0 to 1.
  double fraction() const;
  // Returns the time until the end at the mean speed of this process; nullopt if unknown.
  std::optional<double> seconds_left() const;

 private:
  void take(const RunEvent& run);
  void take(const PlanEvent& plan);
  void take(const StepEvent& step);
  void take(const SpanEvent& span);
  void take(const SyncEvent&) {}
  void take(const RoundEvent& round);
  void take(const LinkEvent&) {}
  void take(const SyncChangeEvent&) {}
  void take(const ViewEvent&) {}
  void take(const OutlierEvent&) {}
  void take(const RiseEvent&) {}
  void take(const EvaluationEvent&) {}
  void take(const CheckpointEvent&) {}
  void take(const EndEvent& end);

  std::string site_;
  SiteActivity activity_ = SiteActivity::kStarting;
  RunEvent run_;
  EndEvent end_;
  int64_t round_ = 1, step_ = 0, local_steps_ = 0;
  std::optional<double> loss_;
  double tokens_per_second_ = 0, waited_seconds_ = 0;
  double start_time_ = 0, start_fraction_ = 0, time_ = 0;
};

}  // namespace farstep
