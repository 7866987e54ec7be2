// Many local steps, then outer steps on the sites' mean pseudo-gradient (DiLoCo, Douillard et al.
// 2023), fragment by fragment and hidden behind training (Streaming DiLoCo, Douillard et al. 2025).
//
// A fragment's delta is taken and sent at one step and its mean applied at a later one or the same;
// outer_sync.h tells what happens in between.
//
// Memory beside that of outer_sync.h: where a delta may be under way while training goes on, a
// fragment's size for theta_local as it was when the delta was taken.
#pragma once

#include <optional>

#include "outer_optimizer/schedule/fragment_schedule.h"
#include "trainer/strategy/outer_sync.h"

namespace farstep {

class LowCommunication : public Strategy {
 public:
  // As OuterSync.
  LowCommunication(const RunConfig& run, std::size_t site_id, std::span<const float> theta,
                   std::vector<TensorPlace> tensors, const Surroundings& surroundings);

  std::span<float> theta_global() override { return sync_.outer().mutable_theta_global(); }
  std::span<float> outer_momentum() override { return sync_.outer().mutable_momentum(); }
  void retune(const SyncConfig& sync, std::span<const double> shares) override;
  const SyncConfig& sync_config() const override { return sync_.config(); }
  void begin_round(int64_t round, int64_t local_steps) override;
  void count_step(int64_t tokens) override;
  Synced sync(const Contribution& so_far, bool round_ends, LocalTheta& theta,
              const std::stop_token& stop) override;
  bool try_give_up() override { return sync_.try_give_up(); }
  int64_t fragments_applied() const override { return progress_.fragments_applied; }
  int64_t syncs_done() const override { return progress_.syncs_done; }
  bool local_is_global() const override;
  Json state() const override;
  void restore(const Json& state) override;
  NamedBuffers own_buffers() override;

 private:
  int64_t num_fragments() const { return sync_.config().fragments; }
  void send(const Contribution& so_far, LocalTheta& theta);
  // Waits for the sync under way and takes over what it made of theta_global; nothing if it was
  // given up.
  std::optional<SyncRecord> apply(LocalTheta& theta, const std::stop_token& stop);
  void adopt_global(int64_t fragment, LocalTheta& theta);

  const int64_t base_steps_;
  Recorder& recorder_;
  int64_t round_ = 0;
  std::optional<FragmentSchedule> schedule_;  // of the round; nothing between two
  int64_t local_steps_ = 0;                   // of the round, as planned
  SyncProgress progress_;                     // with sent_theta_, if a delta was sent
  std::vector<float> sent_theta_;             // the sync's worker's while one is under way
  OuterSync sync_;
};

}  // namespace farstep
