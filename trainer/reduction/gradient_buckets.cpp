// Backward finishes gradients from the model's end to its beginning. Cut into buckets, the first
// sums start long before the last gradients exist.
#include "trainer/reduction/gradient_buckets.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// A bucket of 4 MiB can stay in the caches until it is summed. With 16 buckets most of the sum
// overlaps with backward in a small model too.
constexpr int64_t kMostHostValues = 1 << 20;
constexpr int64_t kLeastHostBuckets = 16;
// A reduction between GPUs has a latency of tens of microseconds, so its buckets are larger.
constexpr int64_t kMostGpuValues = 8 << 20;
constexpr int64_t kLeastGpuBuckets = 8;

}  // namespace

int64_t host_bucket_values(int64_t size) {
  return std::clamp<int64_t>(size / kLeastHostBuckets, 1, kMostHostValues);
}

int64_t gpu_bucket_values(int64_t size) {
  return std::clamp<int64_t>(size / kLeastGpuBuckets, 1, kMostGpuValues);
}

GradientBuckets::GradientBuckets(int64_t size, int64_t bucket_values)
    : size_(size), bucket_values_(bucket_values) {
  FARSTEP_CHECK(size > 0 && bucket_values > 0, "{} values in buckets of {}", size, bucket_values);
  left_.resize(static_cast<std::size_t>((size + bucket_values - 1) / bucket_values));
  restart();
}

// Buckets are numbered from the end: backward completes the last parameters first.
Bucket GradientBuckets::bucket(std::size_t number) const {
  FARSTEP_CHECK(number < count(), "bucket {} of {}", number, count());
  const int64_t end = size_ - static_cast<int64_t>(number) * bucket_values_;
  return {std::max<int64_t>(0, end - bucket_values_), end};
}

void GradientBuckets::restart() {
  for (std::size_t number = 0; number < count(); ++number) left_[number] = bucket(number).size();
  num_final_ = 0;
}

void GradientBuckets::add(int64_t begin, int64_t end) {
  FARSTEP_CHECK(0 <= begin && begin <= end && end <= size_, "elements {} to {} of {}", begin, end,
                size_);
  while (begin < end) {
    const auto number = static_cast<std::size_t>((size_ - end) / bucket_values_);
    const int64_t first = std::max(begin, bucket(number).begin);
    FARSTEP_CHECK(left_[number] >= end - first, "elements {} to {} are final twice", first, end);
    left_[number] -= end - first;
    end = first;
  }
  // In order of numbers, as all devices must send their buckets in one order.
  while (num_final_ < count() && left_[num_final_] == 0) ++num_final_;
}

}  // namespace farstep
