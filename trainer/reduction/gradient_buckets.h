// Cuts the flat gradient into buckets, and counts those that one device has completed in a step.
//
// Buckets are numbered from the end of the vector, where backward begins, and become final in that
// order only. So all devices deliver the same buckets in the same order, although their models may
// finish ranges in different orders. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace farstep {

// Elements [begin, end) of the flat vector.
struct Bucket {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Returns the values in a bucket for a gradient of `size` in host memory: 4 MiB, or less if there
// would be too few buckets.
int64_t host_bucket_values(int64_t size);
// Does the same for GPUs: 32 MiB, or less.
int64_t gpu_bucket_values(int64_t size);

class GradientBuckets {
 public:
  // `size` values in all, above 0, as is `bucket_values`. The last bucket may be smaller.
  GradientBuckets(int64_t size, int64_t bucket_values);

  std::size_t count() const { return left_.size(); }
  Bucket bucket(std::size_t number) const;

  // Begins a step, in which no value is final.
  void restart();
  // Marks elements [begin, end) as final. Throws InternalError if they are outside the vector or
  // final already.
  void add(int64_t begin, int64_t end);
  // Returns the number n for which buckets 0 to n - 1 are final.
  std::size_t num_final() const { return num_final_; }

 private:
  const int64_t size_, bucket_values_;
  std::vector<int64_t> left_;  // number of values in each bucket that are not final
  std::size_t num_final_ = 0;
};

}  // namespace farstep
