// The strategy of many local steps and then an outer step on the sites' mean delta, fragment by
// fragment and hidden behind training.
//
// A fragment's delta is computed and sent at one step. Its mean is applied at the same step or a
// later one. outer_sync.h describes the sync between the two.
//
// Memory besides that of outer_sync.h: with a delay, a fragment's size for a copy of theta_local
// from the time of the delta.
//
// Sources: DiLoCo, Douillard et al. 2023; Streaming DiLoCo, Douillard et al. 2025.
#pragma once

#include <optional>

#include "outer_optimizer/schedule/fragment_schedule.h"
#include "trainer/strategy/outer_sync/outer_sync.h"
#include "trainer/strategy/strategy.h"

namespace farstep {

class LowCommunication : public Strategy {
 public:
  // As for OuterSync.
  LowCommunication(const StrategySettings& settings, const View& view, StartValues values,
                   const Surroundings& surroundings);

  std::span<float> theta_global() override { return sync_.outer().mutable_theta_global(); }
  std::span<float> outer_momentum() override { return sync_.outer().mutable_momentum(); }
  void retune(const outer_optimizer::SyncConfig& sync, std::span<const double> shares) override;
  const outer_optimizer::SyncConfig& sync_config() const override { return sync_.config(); }
  Synced begin(const RoundStart& start, const heterogeneity::RoundTiming& so_far,
               const std::stop_token& stop) override;
  Synced after_step(double learning_rate, const heterogeneity::RoundTiming& so_far,
                    const std::stop_token& stop) override;
  Synced end(const heterogeneity::RoundTiming& so_far, const std::stop_token& stop) override;
  Synced attend(const RoundStart& start, const std::stop_token& stop) override;
  void settle() override;
  int64_t syncs_of_round() const override { return progress_.fragments_applied; }
  bool is_before_syncs() const override;
  int64_t syncs_done() const override { return progress_.syncs_done; }
  bool local_is_global() const override;
  Json state() const override;
  void restore(const Json& state) override;
  NamedBuffers own_buffers() override;
  void drop_steps(std::span<float> theta_local) override;
  void begin_from_global(std::span<float> theta_local) override;

 private:
  int64_t num_fragments() const { return sync_.config().fragments; }
  LocalTheta& theta() const { return *start_->theta; }
  // Returns the schedule of the fragments at a site that plans `local_steps` steps.
  outer_optimizer::FragmentSchedule schedule_of(int64_t local_steps) const;
  // Sends and applies the fragments that are due; with `round_ends` all that are left.
  Synced sync(const heterogeneity::RoundTiming& so_far, bool round_ends,
              const std::stop_token& stop);
  void send(const heterogeneity::RoundTiming& so_far);
  // Does the syncs of a round that is attended without work.
  Synced attend_syncs(const std::stop_token& stop);
  // Throws if a member did not train by the round's plan.
  void check_work(const wan::Go& go, int64_t fragment) const;
  // Waits for the sync under way, which then counts. Returns false if it was given up. Returns true
  // at once for a sync that counts but is not applied.
  bool receive(const std::stop_token& stop);
  // Copies the fragment of theta_global that was received into theta_local.
  void adopt_global(int64_t fragment);
  // Copies all of theta_global, and drops this site's steps.
  void begin_anew();
  // Counts the steps that the deltas of a newcomer lack, beside those of the others.
  void count_missing_steps();

  const int64_t base_steps_;
  Recorder& recorder_;
  std::optional<RoundStart> start_;  // the round under way; null between two rounds
  SyncProgress progress_;            // belongs with sent_theta_, once a delta was sent
  std::vector<float> sent_theta_;    // the worker's while a sync is under way
  OuterSync sync_;
};

}  // namespace farstep
