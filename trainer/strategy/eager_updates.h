// The strategy that hides a whole round's exchange behind the next round. A site steps by
//
//   delta~_i(t) = mean(t-1) + c_i delta_i(t) - c_i delta_i(t-1)
//
// So its own delta counts at once, and the other sites' deltas count a round later. c_i is the
// averaging weight of its delta in the newest mean that the site has received; 1/N before the
// first.
//
// The outer step is linear, so theta_i = theta_global + offset_i. theta_global takes the means, a
// round late and with the same bits at every site. The offset is the site's own; the same Nesterov
// step updates it by the rest of delta~_i. A round's delta is theta_i at its start minus theta_i at
// its end. Its sync runs during the next round and is applied when that round ends. After the run's
// last round the site waits for the sync at once. Then theta_global has all deltas, and the site
// adopts it.
//
// Memory besides that of outer_sync.h: three times the model's size, for the offset, its momentum
// and the delta that was sent.
//
// Source: Eager Updates for Overlapped Communication and Computation in DiLoCo, Kale et al. 2025.
#pragma once

#include <optional>

#include "trainer/strategy/outer_sync/outer_sync.h"
#include "trainer/strategy/strategy.h"

namespace farstep {

class EagerUpdates : public Strategy {
 public:
  // As for OuterSync.
  EagerUpdates(const StrategySettings& settings, const View& view, StartValues values,
               const Surroundings& surroundings);

  // Throws ConfigError, with the member under `path`, unless the run syncs the model as one
  // fragment without delay and without mixing (alpha).
  static void check(const StrategySettings& settings, const JsonPath& path);

  std::span<float> theta_global() override { return sync_.outer().mutable_theta_global(); }
  std::span<float> outer_momentum() override { return sync_.outer().mutable_momentum(); }
  std::optional<uint64_t> pending_checksum() override;
  // Takes effect for the delta of the round before, which begin() sends later.
  void retune(const outer_optimizer::SyncConfig& sync, std::span<const double> shares) override;
  const outer_optimizer::SyncConfig& sync_config() const override { return sync_.config(); }
  // Sends the delta of the round before.
  Synced begin(const RoundStart& start, const heterogeneity::RoundTiming& so_far,
               const std::stop_token& stop) override;
  Synced after_step(double learning_rate, const heterogeneity::RoundTiming& so_far,
                    const std::stop_token& stop) override;
  // Applies the sync of the round before; at the end of the run's last round, that one's as well.
  // A site that is leaving also waits for this round's sync, while it has time: its delta is part
  // of the mean that the others apply a round later.
  Synced end(const heterogeneity::RoundTiming& so_far, const std::stop_token& stop) override;
  // Attends the sync of the round before, and brings nothing to that of this round.
  Synced attend(const RoundStart& start, const std::stop_token& stop) override;
  // Keeps the mean of a committed sync, to apply it after a resume.
  void settle() override;
  int64_t syncs_of_round() const override { return 0; }
  // A round begins with the sync of the round before.
  bool is_before_syncs() const override { return !has_sent() && !progress_.received; }
  int64_t syncs_done() const override { return progress_.syncs_done; }
  bool local_is_global() const override { return false; }
  Json state() const override;
  void restore(const Json& state) override;
  NamedBuffers own_buffers() override;
  // The delta of the round before is still sent.
  void drop_steps(std::span<float> theta_local) override;
  void begin_from_global(std::span<float> theta_local) override;

 private:
  outer_optimizer::Range whole() const { return sync_.fragment_range(0); }
  bool has_sent() const { return progress_.sent.has_value(); }
  LocalTheta& theta() const { return *start_->theta; }
  // Sends the delta of the round before, unless that was done. Returns false if a stop was
  // requested.
  bool send_if_due(const std::stop_token& stop);
  void send();
  // Waits for the mean of the delta that was sent; returns false if the sync was given up.
  bool receive(const std::stop_token& stop);
  // Ends the round: computes its delta, and takes the outer step by delta~.
  void step(const heterogeneity::RoundTiming& so_far);
  // Ends the round without its steps, as the delta of the round before was left out: begins anew
  // from theta_global.
  void drop_round();
  // Waits until the others have this round's delta, or a stop is requested: then it is still to be
  // sent after a resume.
  void hand_in(const std::stop_token& stop);
  // Ends the run: sets theta_local to theta_global.
  void adopt_global();
  // Makes the delta of `round` zeros without weight, and takes part in its sync. The latter returns
  // false if the sync was given up.
  void bring_nothing(int64_t round);
  bool attend_sync(Synced& synced, const std::stop_token& stop);
  // Sets theta_local's offset from theta_global to zeros. Nothing is left to send.
  void begin_anew();

  const int64_t rounds_;
  const outer_optimizer::NesterovSettings settings_;
  Recorder& recorder_;
  std::optional<RoundStart> start_;  // the round under way; null between two rounds
  // The plan of the round whose delta was sent. Empty before the first round, and for a delta from
  // before a resume.
  std::vector<PlannedWork> sent_plan_;
  EagerProgress progress_;
  std::vector<float> offset_, offset_momentum_;
  std::vector<float> sent_delta_;  // zeros before the first
  OuterSync sync_;
};

}  // namespace farstep
