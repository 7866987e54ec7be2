// Synchronous data parallelism: all sites take every inner step together, by the mean of their
// gradients, weighted by sequences. theta_local is equal at all sites after each step. A round ends
// with a sync that exchanges nothing: the sites prove that, and tell each other their step times.
//
// The kinds differ in who adds up the gradient and who updates:
//
//   ring_all_reduce       Each site adds up a part, or all do so in a ring. Every site updates.
//   parameter_server      The servers add up their shards. Every site updates. A server may have a
//                         batch of 0: it then takes part in the steps without gradients.
//   data_parallel_master  The first server adds up, updates alone, and hands out the values.
//                         Nothing of that overlaps with backward.
//
// All sites must take the same number of steps, and hold the same moments. So a run that has lost a
// site ends, and resumes from its newest step that all sites have saved.
//
// Memory besides theta_global: an unused outer momentum, which checkpoints have. With a master,
// the other sites' own updates are meaningless: the master's values overwrite them.
//
// Sources: Horovod, Sergeev and Del Balso 2018; Scaling Distributed Machine Learning with the
// Parameter Server, Li et al. 2014.
#pragma once

#include <optional>

#include "trainer/strategy/gradient_sums.h"
#include "trainer/strategy/outer_sync/strategy_ground.h"
#include "trainer/strategy/outer_sync/sync_progress.h"
#include "trainer/strategy/strategy.h"

namespace farstep {

class DataParallel : public Strategy {
 public:
  enum class Update { kEverywhere, kAtMaster };

  DataParallel(Update update, const StrategySettings& settings, const View& view,
               StartValues values, const Surroundings& surroundings);

  // Throws ConfigError, with the member under `path`, unless the run can sum gradients: whole
  // gradients without delay, by a codec that needs no feedback.
  static void check(const StrategySettings& settings, const JsonPath& path);

  std::span<float> theta_global() override { return theta_global_; }
  std::span<float> outer_momentum() override { return momentum_; }
  // Throws InternalError: there is nothing to choose.
  void retune(const outer_optimizer::SyncConfig& sync, std::span<const double> shares) override;
  const outer_optimizer::SyncConfig& sync_config() const override { return sync_; }
  Synced begin(const RoundStart& start, const heterogeneity::RoundTiming& so_far,
               const std::stop_token& stop) override;
  SiteReduction* gradients() override { return &sums_; }
  Synced after_step(double learning_rate, const heterogeneity::RoundTiming& so_far,
                    const std::stop_token& stop) override;
  Synced end(const heterogeneity::RoundTiming& so_far, const std::stop_token& stop) override;
  // Throws PeerError: a newcomer would lack the moments of the others.
  Synced attend(const RoundStart& start, const std::stop_token& stop) override;
  void settle() override {}
  int64_t syncs_of_round() const override { return 0; }
  // Nobody takes the state of its rounds.
  bool is_before_syncs() const override { return false; }
  // Each step is a sync of the run.
  int64_t syncs_done() const override { return progress_.syncs_done; }
  bool local_is_global() const override { return progress_.work.steps == 0; }
  Json state() const override;
  void restore(const Json& state) override;
  NamedBuffers own_buffers() override { return {}; }
  void drop_steps(std::span<float> theta_local) override;
  void begin_from_global(std::span<float> theta_local) override;

 private:
  LocalTheta& theta() const { return *start_->theta; }
  outer_optimizer::Range whole() const { return {0, std::ssize(theta_global_)}; }
  SumPlan sum_plan(int64_t steps_done) const;
  // Gives all sites the master's values, and returns how long that took.
  double hand_out_values();
  void check_work(const wan::Go& go) const;

  const Update update_;
  const outer_optimizer::SyncConfig sync_;
  const Surroundings outside_;
  std::vector<float> theta_global_, momentum_;
  std::optional<RoundStart> start_;  // the round under way; null between two rounds
  StepProgress progress_;
  GradientSums sums_;
};

}  // namespace farstep
