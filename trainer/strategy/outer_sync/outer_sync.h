// One sync of a fragment, from the delta to the outer step. All strategies that average deltas
// share it.
//
// delta -> arrive at the coordinator -> exchange -> vote on the hash of the next theta_global ->
// outer step.
//
// The coordinator's answer to the arrival names the members that take part. If one of them is lost
// before all have voted, the others begin the sync anew: from the delta, in a new generation.
//
// Threads: the training thread calls all methods. A worker does the sync between send() and
// receive(), while the training thread trains on; during that time theta_global and momentum belong
// to the worker. Only one sync is under way at a time. The time that receive() waits for peers is
// the site's idle time, as in the papers. The time that it waits for exchange and vote is exposed
// WAN time.
//
// Memory besides theta_global and momentum: a fragment's size for the delta, which the mean
// replaces, and the residuals (residuals.h); until a sync is committed, the others' encoded deltas
// (received_deltas.h).
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <span>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/outer_config.h"
#include "outer_optimizer/outer_optimizer.h"
#include "outer_optimizer/sync_config.h"
#include "outer_optimizer/sync_partitions.h"
#include "trainer/base/clock.h"
#include "trainer/base/view.h"
#include "trainer/base/worker.h"
#include "trainer/strategy/outer_sync/outlier_watch.h"
#include "trainer/strategy/outer_sync/residuals.h"
#include "trainer/strategy/outer_sync/strategy_ground.h"
#include "trainer/strategy/outer_sync/sync_progress.h"
#include "trainer/strategy/outer_sync/sync_record.h"
#include "trainer/telemetry/recorder.h"
#include "wan/protocol/rendezvous.h"

namespace farstep {

class OuterSync {
 public:
  // Makes syncs among the members of `view`, from the values `start`.
  OuterSync(const StrategySettings& settings, const View& view, StartValues start,
            const Surroundings& surroundings);
  // Gives up a sync that waits for sites. Waits for a sync that has begun, which ends by its own
  // deadlines.
  ~OuterSync();

  outer_optimizer::OuterOptimizer& outer() { return outer_; }
  const outer_optimizer::OuterOptimizer& outer() const { return outer_; }
  const outer_optimizer::SyncConfig& config() const { return sync_; }

  // Does the part of Strategy::retune() that concerns one sync.
  void retune(const outer_optimizer::SyncConfig& sync, std::span<const double> shares);
  // Makes the following syncs run over `exchanges`, which must outlive them: among the members of
  // `view`, or of a later view that a sync finds. No sync may be under way.
  void meet(const View& view, outer_optimizer::Exchanges& exchanges);

  // Takes the outer step of a sync that is committed and not applied yet.
  void apply(const wan::SyncId& id, std::span<const float> mean);
  // Returns the checksum of theta_global as apply() would leave it.
  uint64_t checksum_after(const wan::SyncId& id, std::span<const float> mean) const;

  outer_optimizer::Range fragment_range(int64_t fragment) const;
  // Returns a fragment's mean, after receive().
  std::span<float> values(int64_t fragment);

  // Throws DivergenceError: the delta is not finite at element `index` of the model. The message
  // names the tensor.
  [[noreturn]] void refuse_delta(const wan::SyncId& id, int64_t index) const;

  // The strategy's part of a sync, called by the worker.
  struct Steps {
    // Writes the fragment's delta, the same one at each call. receive() throws the exceptions of
    // this function.
    std::function<void(std::span<float> delta)> take_delta;
    // Throws if one of the sites did not train by the plan. Called when all have arrived.
    std::function<void(const wan::Go&)> check_plan = [](const auto&) {};
    // Whether the sync calls apply() when it is committed. Else the strategy calls it later.
    bool applies_mean = true;
  };
  // Begins a sync and sends `contribution` with it. No other sync may be under way. Throws
  // DivergenceError if this site's deltas were left out in three rounds in a row.
  void send(const wan::SyncId& id, const wan::Contribution& contribution, Steps steps);
  bool is_under_way() const { return flight_.has_value(); }
  // Waits in `round` for the sync under way. When it returns a record, the sync is committed at all
  // sites. Returns nullopt if a stop was requested before all sites had begun the sync. Logs the
  // deltas that are out of proportion, and how many values were too large for the codec. Throws the
  // sync's failure; DivergenceError if more than half of the deltas would be left out, at all
  // sites.
  std::optional<SyncRecord> receive(int64_t round, const std::stop_token& stop);
  // Gives up a sync that still waits for sites. Returns false if all sites have begun the sync:
  // receive() must be called then. Throws the failure of the wait.
  bool try_give_up();

  // As in Strategy. state() requires that no sync is under way; restore() allocates the residuals,
  // and throws DataError if the tuning does not fit the run.
  OuterSyncState state() const;
  void restore(const OuterSyncState& state);
  void add_residuals_to(NamedBuffers& buffers) { residuals_.add_to(buffers); }
  // Lets the site begin anew, as after a delta that is out of proportion: its residuals become
  // zeros, and its past deltas are forgotten.
  void begin_anew();
  // Drops residuals that a lossless codec has brought to 0. Called between two rounds.
  void drop_spent_residuals();

 private:
  struct Arrival {
    std::optional<wan::Go> go;  // nullopt if the site gave up
    double seconds = 0;
  };
  struct Outcome {
    std::optional<wan::Go> go;  // that of the exchange that counts; nullopt if the site gave up
    double averaging_weight = 0;
    std::string theta_hash;
    double seconds = 0;
  };
  // The sync that the worker does.
  struct Flight {
    wan::SyncId id;
    std::stop_source give_up;
    std::shared_future<Arrival> arrival;
    std::future<Outcome> outcome;
  };

  outer_optimizer::OuterStep step_of(int64_t round) const;
  const outer_optimizer::Codec& codec_of(int64_t round) const;
  // Returns the members' shares of the reduction, by place.
  std::vector<double> shares() const;
  // Returns what each member reduces of a fragment, relative to the fragment's begin; `arrived` are
  // the members of a sync, by place.
  std::vector<outer_optimizer::Partition> partitions(
      const outer_optimizer::Range& fragment,
      std::span<const outer_optimizer::Arrived> arrived = {}) const;
  void require_fits(const outer_optimizer::SyncConfig& sync, std::span<const double> shares) const;
  void apply_config();
  void make_room_for_residuals();
  // Keeps the residuals of the view's partitions; those of `fragment`, if it is given, by
  // `partition`.
  void keep_residuals(std::optional<int64_t> fragment = {},
                      const outer_optimizer::Partition& partition = {});

  // Run on the worker.
  Arrival arrive(const wan::SyncId& id, const wan::Contribution& contribution, const Steps& steps,
                 std::stop_token give_up);
  // Exchanges and votes, once more in each new generation. Nothing of the sync is kept then.
  Outcome finish(const wan::SyncId& id, std::optional<wan::Go> go,
                 const wan::Contribution& contribution, const Steps& steps,
                 const std::stop_token& give_up);
  Outcome repeat(const wan::SyncId& id, std::optional<wan::Go> go,
                 const wan::Contribution& contribution, const Steps& steps,
                 const std::stop_token& give_up);
  Outcome exchange(const wan::SyncId& id, const wan::Go& go, const Steps& steps,
                   const std::stop_token& give_up);
  // Returns the figures by which the coordinator judges a delta; nullopt if it is not to. Throws
  // DivergenceError if a value of it is not finite.
  std::optional<outer_optimizer::DeltaFigures> figures_of(const wan::SyncId& id,
                                                          const outer_optimizer::Work& work,
                                                          std::span<const float> delta) const;
  void average(const wan::SyncId& id, const wan::Go& go, std::span<const double> coefficients,
               std::span<float> values);
  void take_view(const View& view);

  const outer_optimizer::OuterConfig outer_config_;
  const int64_t base_steps_;
  const std::vector<TensorStart> tensors_;
  const Surroundings outside_;
  outer_optimizer::OuterOptimizer outer_;
  View view_;                       // the worker's while a sync is under way
  const int64_t first_generation_;  // in which this site began, or joined
  std::mt19937_64 delta_numbers_{std::random_device{}()};
  outer_optimizer::Exchanges* exchanges_ = nullptr;
  outer_optimizer::SyncConfig sync_;
  std::optional<SyncTuning> tuning_;  // as the latest retune() set it
  std::unique_ptr<outer_optimizer::Codec> codec_, fine_codec_;
  // Belong to the worker while a sync is under way, like theta_global and momentum.
  Residuals residuals_;
  OutlierWatch watch_;
  std::vector<float> values_;  // the delta, then the mean
  int64_t saturated_ = 0;      // values of the delta that the codec cannot send
  // Of the sync under way: what this site has of it, and what of that it tells the others when the
  // sync is repeated.
  outer_optimizer::ReceivedDeltas received_;
  std::optional<outer_optimizer::Holding> holding_;
  std::optional<Flight> flight_;
  Worker worker_;  // joins first, before its tasks' data goes
};

}  // namespace farstep
