// The sum of gradients that lie in host memory: of CPU slices.
//
// A bucket that is final on all devices is added up by the next thread that is here anyway: the one
// that made it so, or one that waits for the rest. Every element is summed in order of the devices,
// so the bits depend neither on timing nor on the buckets.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "trainer/reduction/gradient_buckets.h"
#include "trainer/reduction/site_reduction.h"

namespace farstep {

// Calls `work` for ranges that make up [begin, end), on the threads that the calling one has.
using SpreadWork = std::function<void(int64_t begin, int64_t end,
                                      const std::function<void(int64_t, int64_t)>& work)>;

class HostReduction : public SiteReduction {
 public:
  // `gradients`: each device's, of one size above 0; they stay where they are.
  HostReduction(std::vector<std::span<float>> gradients, int64_t bucket_values, SpreadWork spread);

  void begin_step() override;
  void ready(std::size_t device, int64_t begin, int64_t end) override;
  bool finish(std::size_t device) override;
  void abandon() override;

 private:
  // Buckets that are final on all devices. Needs mutex_.
  std::size_t num_final() const;
  // Adds up what is final and that nobody has taken, as long as there is any; `lock` holds mutex_.
  void work(std::unique_lock<std::mutex>& lock);
  void add_up(const Bucket& bucket) const;

  const std::vector<std::span<float>> gradients_;
  const SpreadWork spread_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<GradientBuckets> devices_;
  std::size_t num_taken_ = 0, num_added_up_ = 0;  // buckets
  std::size_t num_finishing_ = 0;                 // devices
  bool is_abandoned_ = false;
};

}  // namespace farstep
