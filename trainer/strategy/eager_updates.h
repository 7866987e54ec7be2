// A whole round's exchange hidden behind the next round (Eager Updates for Overlapped Communication
// and Computation in DiLoCo, Kale et al. 2025): a site steps by
//
//   delta~_i(t) = mean(t-1) + c_i delta_i(t) - c_i delta_i(t-1)
//
// so that its own delta counts at once and those of the others a round later; c_i is what its delta
// counts in the newest mean that it has, 1/N before the first.
//
// The outer step is linear. So theta_i = theta_global + offset_i, where theta_global gets the
// means, a round late and with the same bits at every site, and the offset, a site's own, goes by
// the same Nesterov step driven by what is left of delta~_i. A round's delta is theta_i at its
// start less theta_i at its end; its sync is under way during the next round and applied when that
// ends. In the run's last round it is waited for at once, and the site adopts theta_global, which
// has all deltas then.
//
// Memory beside that of outer_sync.h: three times the model's size, for the offset, its momentum
// and the delta that was sent.
#pragma once

#include <optional>

#include "trainer/strategy/outer_sync.h"

namespace farstep {

class EagerUpdates : public Strategy {
 public:
  // As OuterSync.
  EagerUpdates(const RunConfig& run, std::size_t site_id, std::span<const float> theta,
               std::vector<TensorPlace> tensors, const Surroundings& surroundings);

  std::span<float> theta_global() override { return sync_.outer().mutable_theta_global(); }
  std::span<float> outer_momentum() override { return sync_.outer().mutable_momentum(); }
  // The delta of the round before is not under way yet: it is sent as the new config says.
  void retune(const SyncConfig& sync, std::span<const double> shares) override;
  const SyncConfig& sync_config() const override { return sync_.config(); }
  void begin_round(int64_t round, int64_t local_steps) override;
  void count_step(int64_t tokens) override;
  // Sends the delta of the round before at the first call of a round. What it tells of, at a
  // round's end, is the sync of the round before; of the run's last round, that one's as well.
  Synced sync(const Contribution& so_far, bool round_ends, LocalTheta& theta,
              const std::stop_token& stop) override;
  // A sync that counts is kept as it is, to be applied after a resume.
  bool try_give_up() override;
  int64_t fragments_applied() const override { return 0; }
  int64_t syncs_done() const override { return progress_.syncs_done; }
  bool local_is_global() const override { return false; }
  Json state() const override;
  void restore(const Json& state) override;
  NamedBuffers own_buffers() override;

 private:
  Range whole() const { return sync_.fragment_range(0); }
  bool has_sent() const { return progress_.sent.has_value(); }
  void send();
  // Waits for the mean of the delta that was sent; false if it was given up.
  bool receive(const std::stop_token& stop);
  // The round's end: takes its delta, and does the outer step by delta~.
  void step(const Contribution& so_far, LocalTheta& theta);
  // The run's end: theta_local and theta_global become one.
  void adopt_global(LocalTheta& theta);

  const int64_t rounds_;
  const NesterovSettings settings_;
  Recorder& recorder_;
  int64_t round_ = 0;
  EagerProgress progress_;
  std::vector<float> offset_, offset_momentum_;
  std::vector<float> sent_delta_;  // zeros before the first
  OuterSync sync_;
};

}  // namespace farstep
