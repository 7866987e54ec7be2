// Adds up gradients in host memory, those of CPU slices.
//
// The thread that completes a bucket on the last device adds it up, or a thread that waits in
// finish(). Every element is summed in order of the devices, so the bits do not depend on timing or
// bucket size.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "trainer/reduction/gradient_buckets.h"
#include "trainer/reduction/site_reduction.h"

namespace farstep {

// Calls `work` for ranges that together cover [begin, end), on the threads of the caller.
using SpreadWork = std::function<void(int64_t begin, int64_t end,
                                      const std::function<void(int64_t, int64_t)>& work)>;

class HostReduction : public SiteReduction {
 public:
  // `gradients` has one span a device, all of one size above 0, which must stay valid.
  HostReduction(std::vector<std::span<float>> gradients, int64_t bucket_values, SpreadWork spread);

  void begin_step() override;
  void ready(std::size_t device, int64_t begin, int64_t end) override;
  bool finish(std::size_t device) override;
  void abandon() override;
  // Device 0's thread calls next->finish(). Any device's thread calls next->ready().
  bool pass_on(SiteReduction* next) override;

 private:
  // Returns the number of buckets that are final on all devices. The caller holds mutex_.
  std::size_t num_final() const;
  // Adds up final buckets that no thread has taken until there are none; `lock` holds mutex_.
  void work(std::unique_lock<std::mutex>& lock);
  void add_up(const Bucket& bucket) const;
  // Waits for the other sites' sum, and gives it to all devices.
  bool finish_next();

  const std::vector<std::span<float>> gradients_;
  const SpreadWork spread_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::vector<GradientBuckets> devices_;
  std::size_t num_taken_ = 0, num_added_up_ = 0;  // buckets
  std::size_t num_finishing_ = 0;                 // devices
  bool is_abandoned_ = false;
  SiteReduction* next_ = nullptr;  // not changed during a step
  bool is_passed_on_ = false;      // all devices have next_'s sum
};

}  // namespace farstep
