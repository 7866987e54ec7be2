// The flat gradient cut into buckets, and how many of them one device has made final in a step.
//
// Buckets are numbered from the vector's end, where backward begins, and count only in that order:
// so all devices hand over the same buckets in the same order, in whatever order their models
// finish them. Not thread-safe.
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

// Values of a bucket for a gradient of `size`: 4 MiB of them, or fewer, so that there are several.
int64_t default_bucket_values(int64_t size);

class GradientBuckets {
 public:
  // Of a gradient of `size` values; both above 0. The last bucket may be smaller.
  GradientBuckets(int64_t size, int64_t bucket_values);

  std::size_t count() const { return left_.size(); }
  Bucket bucket(std::size_t number) const;

  // A step begins: no value is final.
  void restart();
  // Elements [begin, end) are final. Throws InternalError if they are not of the vector, or if a
  // bucket would have more values than it holds.
  void add(int64_t begin, int64_t end);
  // So many buckets, from the first on, are final.
  std::size_t num_final() const { return num_final_; }

 private:
  const int64_t size_, bucket_values_;
  std::vector<int64_t> left_;  // values of each bucket that are not final
  std::size_t num_final_ = 0;
};

}  // namespace farstep
