// Many local steps, then outer steps on the sites' mean pseudo-gradient (DiLoCo, Douillard et al.
// 2023), fragment by fragment and hidden behind training (Streaming DiLoCo, Douillard et al. 2025).
//
// A sync of a fragment: delta -> arrive at the coordinator -> exchange -> vote on the hash that
// theta_global would have -> apply. Only the first and the last are the training thread's; the rest
// is done by a worker while training goes on, until the step at which the mean is to be applied.
// What the training thread waits there for peers is the site's idle time in the papers' sense; what
// it waits for exchange and vote is exposed WAN time.
//
// Memory beside theta_global and momentum: a residual of the model's size if there is error
// feedback; buffers of a fragment's size for the delta that becomes the mean, for the next residual
// if there is feedback, and where a delta may be under way while training goes on, for the delta as
// it was sent.
#pragma once

#include <atomic>
#include <future>
#include <optional>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/outer_optimizer.h"
#include "outer_optimizer/schedule/fragment_schedule.h"
#include "trainer/base/clock.h"
#include "trainer/base/worker.h"
#include "trainer/config/run_config.h"
#include "trainer/strategy/strategy.h"
#include "trainer/strategy/sync_progress.h"
#include "trainer/telemetry/recorder.h"
#include "wan/membership/rendezvous.h"

namespace farstep {

// Where a tensor begins in the flat vector.
struct TensorPlace {
  std::string name;
  int64_t begin = 0;
};

class LowCommunication : public Strategy {
 public:
  // What a site has besides the strategy; all of it must outlive the strategy.
  struct Surroundings {
    Rendezvous& rendezvous;
    Exchange& exchange;
    Recorder& recorder;
    const Clock& clock;
  };

  // Of site `site_id`; starts from theta_global = `theta`, whose tensors are `tensors`, in order
  // and without gaps. `has_feedback`: what the exchange's encoding leaves out of a delta is added
  // to the next one.
  LowCommunication(const RunConfig& run, std::size_t site_id, std::span<const float> theta,
                   std::vector<TensorPlace> tensors, bool has_feedback,
                   const Surroundings& surroundings);
  // Gives up a sync that waits for sites; one that has begun ends by its own deadlines first.
  ~LowCommunication() override;

  std::span<float> theta_global() override { return outer_.mutable_theta_global(); }
  std::span<float> outer_momentum() override { return outer_.mutable_momentum(); }
  void begin_round(int64_t round, int64_t local_steps) override;
  void count_step(int64_t tokens) override;
  Synced sync(const Contribution& so_far, bool round_ends, LocalTheta& theta,
              const std::stop_token& stop) override;
  bool try_give_up() override;
  int64_t fragments_applied() const override { return progress_.fragments_applied; }
  Json state() const override;
  void restore(const Json& state) override;
  NamedBuffers own_buffers() override;

 private:
  struct Arrival {
    std::optional<Go> go;  // nothing if it was given up
    double seconds = 0;
  };
  struct Outcome {
    double averaging_weight = 0;
    std::string theta_hash;
    double seconds = 0;
  };
  // A sync that the worker does.
  struct Flight {
    SyncId id;
    std::stop_source give_up;
    std::shared_future<Arrival> arrival;
    std::future<Outcome> outcome;
  };

  Range fragment_range(int64_t fragment) const;
  // What each site adds up of a fragment, counted from the fragment's begin.
  std::vector<Range> partitions(const Range& fragment) const;
  void send(const Contribution& so_far, LocalTheta& theta);
  void take_delta(const SyncId& id, LocalTheta& theta, std::span<float> delta);
  // Waits for the flight and takes the outer step; nothing if it was given up.
  std::optional<SyncRecord> apply(LocalTheta& theta, const std::stop_token& stop);
  void apply_mean(int64_t fragment, LocalTheta& theta);

  // The worker's.
  Arrival arrive(const SyncId& id, const Contribution& contribution, const std::string& start_hash,
                 std::stop_token give_up);
  Outcome exchange(const SyncId& id, const Go& go);

  const OuterConfig config_;
  const SyncConfig sync_;
  const int64_t base_steps_;
  const std::size_t site_id_;
  const std::vector<TensorPlace> tensors_;
  std::vector<double> shares_;  // of the reduction, by site
  Surroundings outside_;
  OuterOptimizer outer_;
  int64_t round_ = 0;
  std::optional<FragmentSchedule> schedule_;  // of the round
  int64_t local_steps_ = 0;                   // of the round, as planned
  SyncProgress progress_;                     // with sent_delta_, if one was sent
  std::vector<float> residual_;               // empty without feedback
  std::vector<float> values_;                 // the delta under way, then the mean
  std::vector<float> next_residual_;  // replaces the fragment's residual when the sync counts
  std::vector<float> sent_delta_;
  std::optional<Flight> flight_;
  std::atomic<bool> is_committed_ = false;  // the flight's sync counts at every site
  Worker worker_;                           // last: ends before what its tasks use
};

}  // namespace farstep
