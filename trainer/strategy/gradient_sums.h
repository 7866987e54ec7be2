// Averages a step's gradient over all sites, while backward still computes it.
//
// The gradient is cut into buckets from its end, where backward begins (PyTorch DDP, Li et al.
// 2020; fused tensors, Sergeev and Del Balso 2018). A worker exchanges each bucket as soon as it is
// final. All sites have the same buckets, so they need not agree on anything during a step.
//
// A step counts at all sites or at none: a site cannot complete the exchange without the parts of
// all others. So a site that has begun a step must end it, or leave the run.
//
// A site whose coefficient is 0 serves alone: it reports all parts as ready, and only adds up.
//
// The time that finish() waits for the other sites to end their backward is waiting time. The time
// from then on is exposed WAN time.
//
// Threads: the training thread calls all methods. Any thread may call ready() and abandon().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/base/clock.h"
#include "trainer/base/view.h"
#include "trainer/base/worker.h"
#include "trainer/reduction/gradient_buckets.h"
#include "trainer/reduction/site_reduction.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

// The sums of a round's steps.
struct SumPlan {
  View view;
  int64_t round = 1;
  int64_t steps_done = 0;                  // of the round
  std::vector<double> coefficients = {};   // of the members' gradients, by place
  wan::Hops hops = wan::Hops::kThereBack;  // kThere: only the servers get the sum

  // Whether this site has gradients. Otherwise it serves alone, and neither waits nor sends: its
  // caller records its time.
  bool trains() const { return coefficients[view.self] > 0; }
};

class GradientSums : public SiteReduction, private outer_optimizer::FinalParts {
 public:
  // `borders` are the tensors' first elements, ascending. `recorder` and `clock` must outlive this.
  GradientSums(const outer_optimizer::SyncConfig& sync, int64_t bucket_bytes,
               std::vector<int64_t> borders, Recorder& recorder, const Clock& clock);
  // Ends an exchange that is under way: its transport is dead afterwards.
  ~GradientSums() override;

  // Sets how the next steps are summed, in `gradients`, and makes the links of the plan's view if
  // there are none yet. No step may be under way. `exchanges` and the memory of `gradients` must
  // outlive the steps. All members must call it at the same time for a new view. Throws PeerError.
  void meet(const SumPlan& plan, outer_optimizer::Exchanges& exchanges, std::span<float> gradients);

  void begin_step() override;
  // There is one device, number 0: a site's own sum.
  void ready(std::size_t device, int64_t begin, int64_t end) override;
  // Throws PeerError if a site is lost: then no site has the sum, or the run cannot go on.
  bool finish(std::size_t device) override;
  void abandon() override;
  double coefficient() const override;
  double waited_seconds() const override { return waited_seconds_; }

 private:
  // The exchange's view of the buckets; called by its threads.
  bool is_final(std::size_t bucket) const override;
  void wait_until_final(std::size_t bucket) override;

  // Waits until all members have ended their backward, as this site has.
  void wait_for_backward_of_all();

  const outer_optimizer::SyncConfig sync_;
  const int64_t bucket_bytes_;
  const std::vector<int64_t> borders_;
  Recorder& recorder_;
  const Clock& clock_;
  const std::unique_ptr<outer_optimizer::Codec> codec_;

  SumPlan plan_;
  outer_optimizer::Exchanges* exchanges_ = nullptr;
  std::span<float> gradients_;
  std::vector<std::vector<outer_optimizer::Range>> partitions_;  // of each bucket
  uint32_t step_ = 0;          // of the round; the same at all sites
  double waited_seconds_ = 0;  // of the last step
  std::future<void> sum_;      // of the step under way

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<GradientBuckets> buckets_;  // guarded by mutex_, as is is_abandoned_
  bool is_abandoned_ = false;

  Worker worker_;  // joins first, before its task's data goes
};

}  // namespace farstep
