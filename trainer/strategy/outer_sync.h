// One sync of a fragment, from a delta to the outer step: what all ways to spread syncs over the
// training share.
//
// delta -> arrive at the coordinator -> exchange -> vote on the hash that theta_global would have
// -> outer step. From send() to receive() a worker does it, and has theta_global and momentum to
// itself, while the training thread, whose all methods are, trains on; only one sync is under way
// at a time. What the training thread waits in receive() for peers is the site's idle time in the
// papers' sense; what it waits there for exchange and vote is exposed WAN time.
//
// Memory beside theta_global and momentum: a fragment's size for the delta that becomes the mean,
// and the residuals (residuals.h).
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/outer_optimizer.h"
#include "trainer/base/clock.h"
#include "trainer/base/worker.h"
#include "trainer/config/run_config.h"
#include "trainer/strategy/residuals.h"
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

// What a strategy works with; all of it must outlive the strategy.
struct Surroundings {
  Rendezvous& rendezvous;
  Exchange& exchange;
  Recorder& recorder;
  const Clock& clock;
};

class OuterSync {
 public:
  // Of site `site_id`; starts from theta_global = `theta`, whose tensors are `tensors`, in order
  // and without gaps.
  OuterSync(const RunConfig& run, std::size_t site_id, std::span<const float> theta,
            std::vector<TensorPlace> tensors, const Surroundings& surroundings);
  // Gives up a sync that waits for sites; one that has begun ends by its own deadlines first.
  ~OuterSync();

  OuterOptimizer& outer() { return outer_; }
  const OuterOptimizer& outer() const { return outer_; }
  const SyncConfig& config() const { return sync_; }

  // Strategy::retune(), for what concerns one sync.
  void retune(const SyncConfig& sync, std::span<const double> shares);

  Range fragment_range(int64_t fragment) const;
  // A fragment's mean once it is received.
  std::span<float> values(int64_t fragment);

  // Throws InternalError that names the tensor of element `index` of the model, whose delta is not
  // finite.
  [[noreturn]] void refuse_delta(const SyncId& id, int64_t index) const;

  // What the worker does for a strategy.
  struct Work {
    // Writes the fragment's delta, or throws what receive() is to throw.
    std::function<void(std::span<float> delta)> take_delta;
    // Called when the sync counts, with the mean.
    std::function<void(std::span<const float> mean)> apply_mean = [](auto) {};
  };
  // Begins a sync, which `contribution` goes with. No other may be under way.
  void send(const SyncId& id, const Contribution& contribution, Work work);
  bool is_under_way() const { return flight_.has_value(); }
  // Whether receive() would not wait.
  bool is_over() const;
  // Waits in `round` for the sync under way, which counts at all sites when this returns; nothing
  // if a stop was asked for before all sites had begun it. Throws what it failed with.
  std::optional<SyncRecord> receive(int64_t round, const std::stop_token& stop);
  // As Strategy::try_give_up().
  bool try_give_up();

  // As Strategy's: state() needs that no sync is under way, restore() makes room for residuals.
  OuterSyncState state() const;
  void restore(const OuterSyncState& state);
  void add_residuals_to(NamedBuffers& buffers) { residuals_.add_to(buffers); }
  // Between two rounds: forgets residuals that a codec without loss has brought to 0.
  void drop_spent_residuals();

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

  // What each site adds up of a fragment, counted from the fragment's begin.
  std::vector<Range> partitions(const Range& fragment) const;
  void apply_config();
  void make_room_for_residuals();
  void keep_residuals();

  // The worker's.
  Arrival arrive(const SyncId& id, const Contribution& contribution, const Work& work,
                 std::stop_token give_up);
  Outcome exchange(const SyncId& id, const Go& go, const Work& work);

  const AveragingRule averaging_;
  const std::size_t site_id_;
  const std::vector<double> run_shares_;  // of the reduction, by site, as the run has them
  const std::vector<TensorPlace> tensors_;
  const Surroundings outside_;
  OuterOptimizer outer_;
  SyncConfig sync_;
  std::vector<double> shares_;
  std::optional<SyncTuning> tuning_;  // what the latest retune() asked for
  std::unique_ptr<Codec> codec_;
  // The worker's while a sync is under way, as theta_global and momentum are.
  Residuals residuals_;
  Leftovers leftovers_;
  std::vector<float> values_;  // the delta, then the mean
  std::optional<Flight> flight_;
  std::atomic<bool> is_committed_ = false;  // the flight's sync counts at every site
  Worker worker_;                           // last: ends before what its tasks use
};

}  // namespace farstep
