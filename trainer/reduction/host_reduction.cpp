// Threads find buckets and finish under the mutex; they add up without it, each another bucket.
#include "trainer/reduction/host_reduction.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {
// A block of every device is added before the next block, so that the sum stays in the cache.
constexpr int64_t kBlockValues = 1024;  // 4 KiB, which stay in the first-level cache
}  // namespace

HostReduction::HostReduction(std::vector<std::span<float>> gradients, int64_t bucket_values,
                             SpreadWork spread)
    : gradients_(std::move(gradients)), spread_(std::move(spread)) {
  FARSTEP_CHECK(!gradients_.empty(), "a site has devices");
  for (const auto& gradient : gradients_) {
    FARSTEP_CHECK(gradient.size() == gradients_.front().size(),
                  "gradients of {} and of {} values in one site", gradient.size(),
                  gradients_.front().size());
    devices_.emplace_back(std::ssize(gradient), bucket_values);
  }
}

void HostReduction::begin_step() {
  const std::lock_guard lock(mutex_);
  for (auto& device : devices_) device.restart();
  num_taken_ = num_added_up_ = num_finishing_ = 0;
  is_abandoned_ = is_passed_on_ = false;
}

bool HostReduction::pass_on(SiteReduction* next) {
  const std::lock_guard lock(mutex_);
  next_ = next;
  return true;
}

// Whoever finds a final bucket adds it up, so no thread is kept for that, and none waits with work
// left.
void HostReduction::ready(std::size_t device, int64_t begin, int64_t end) {
  std::unique_lock lock(mutex_);
  devices_.at(device).add(begin, end);
  if (num_taken_ < num_final()) changed_.notify_all();  // threads in finish() can help
  work(lock);
}

// While it waits for other devices, this thread adds up their final buckets.
bool HostReduction::finish(std::size_t device) {
  std::unique_lock lock(mutex_);
  const auto count = devices_.at(device).count();
  if (!is_abandoned_) {
    FARSTEP_CHECK(devices_[device].num_final() == count,
                  "device {} has made {} buckets of {} final", device, devices_[device].num_final(),
                  count);
  }
  ++num_finishing_;
  changed_.notify_all();
  work(lock);
  const auto is_done = [&] {
    return is_abandoned_ || (num_added_up_ == count && num_finishing_ == devices_.size());
  };
  while (!is_done()) {
    changed_.wait(lock, [&] { return is_done() || num_taken_ < num_final(); });
    work(lock);
  }
  if (is_abandoned_ || next_ == nullptr) return !is_abandoned_;
  if (device > 0) {
    changed_.wait(lock, [&] { return is_abandoned_ || is_passed_on_; });
    return !is_abandoned_;
  }
  lock.unlock();
  return finish_next();
}

bool HostReduction::finish_next() {
  try {
    if (!next_->finish(0)) {
      abandon();
      return false;
    }
  } catch (...) {
    abandon();  // the other devices would wait for the sum
    throw;
  }
  const auto& sum = gradients_.front();
  spread_(0, std::ssize(sum), [&](int64_t begin, int64_t end) {
    for (const auto& gradient : std::span(gradients_).subspan(1)) {
      std::copy(sum.begin() + begin, sum.begin() + end, gradient.begin() + begin);
    }
  });
  const std::lock_guard lock(mutex_);
  is_passed_on_ = true;
  changed_.notify_all();
  return true;
}

void HostReduction::abandon() {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
}

std::size_t HostReduction::num_final() const {
  return std::ranges::min_element(devices_, {}, &GradientBuckets::num_final)->num_final();
}

void HostReduction::work(std::unique_lock<std::mutex>& lock) {
  while (!is_abandoned_ && num_taken_ < num_final()) {
    const auto bucket = devices_.front().bucket(num_taken_++);
    // Other threads take other buckets meanwhile.
    lock.unlock();
    add_up(bucket);
    if (next_ != nullptr) next_->ready(0, bucket.begin, bucket.end);
    lock.lock();
    ++num_added_up_;
    if (num_added_up_ == devices_.front().count()) changed_.notify_all();
  }
}

// Each block of elements is summed in a local array, in order of the devices, and then written to
// all; to the first alone if the sum goes on to other sites.
void HostReduction::add_up(const Bucket& bucket) const {
  spread_(bucket.begin, bucket.end, [this](int64_t begin, int64_t end) {
    std::array<float, kBlockValues> sum;
    for (int64_t first = begin; first < end; first += kBlockValues) {
      const auto size = static_cast<std::size_t>(std::min(kBlockValues, end - first));
      std::copy_n(gradients_.front().data() + first, size, sum.data());
      for (const auto& gradient : std::span(gradients_).subspan(1)) {
        const float* const values = gradient.data() + first;
        for (std::size_t i = 0; i < size; ++i) sum[i] += values[i];
      }
      const auto num_written = next_ == nullptr ? gradients_.size() : 1;
      for (const auto& gradient : std::span(gradients_).first(num_written)) {
        std::copy_n(sum.data(), size, gradient.data() + first);
      }
    }
  });
}

}  // namespace farstep
