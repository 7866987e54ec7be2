#include "trainer/reduction/gradient_buckets.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

TEST_CASE("buckets make up the vector from its end to its begin") {
  for (const int64_t size : {1, 2, 7, 64, 1000}) {
    for (const int64_t bucket_values : {1, 3, 64, 5000}) {
      const GradientBuckets buckets(size, bucket_values);
      int64_t end = size;
      for (std::size_t number = 0; number < buckets.count(); ++number) {
        CHECK(buckets.bucket(number).end == end);
        CHECK(buckets.bucket(number).size() == std::min(bucket_values, end));
        end = buckets.bucket(number).begin;
      }
      CHECK(end == 0);
    }
  }
}

TEST_CASE("buckets are final in order once all of their values are") {
  GradientBuckets buckets(10, 4);  // [6, 10), [2, 6), [0, 2)
  CHECK(buckets.num_final() == 0);
  buckets.add(8, 10);
  buckets.add(5, 7);
  CHECK(buckets.num_final() == 0);
  buckets.add(7, 8);
  CHECK(buckets.num_final() == 1);
  buckets.add(0, 2);
  CHECK(buckets.num_final() == 1);
  buckets.add(3, 3);
  buckets.add(2, 5);
  CHECK(buckets.num_final() == 3);
  buckets.restart();
  CHECK(buckets.num_final() == 0);
  buckets.add(0, 10);
  CHECK(buckets.num_final() == 3);
}

TEST_CASE("values that are final twice or not of the vector are a bug") {
  GradientBuckets buckets(10, 4);
  buckets.add(7, 10);
  CHECK_THROWS_AS(buckets.add(5, 8), InternalError);
  CHECK_THROWS_AS(buckets.add(-1, 1), InternalError);
  CHECK_THROWS_AS(buckets.add(9, 11), InternalError);
  CHECK_THROWS_AS(buckets.bucket(3), InternalError);
  CHECK_THROWS_AS(GradientBuckets(0, 4), InternalError);
  CHECK_THROWS_AS(GradientBuckets(4, 0), InternalError);
}

TEST_CASE("gradients of any size have several buckets of at most four mebibytes on a host") {
  CHECK(host_bucket_values(1) == 1);
  CHECK(host_bucket_values(160) == 10);
  CHECK(host_bucket_values(1'000'000'000) == 1 << 20);
}

TEST_CASE("gradients of any size have several buckets of at most 32 mebibytes on GPUs") {
  CHECK(gpu_bucket_values(1) == 1);
  CHECK(gpu_bucket_values(160) == 20);
  CHECK(gpu_bucket_values(1'000'000'000) == 8 << 20);
  // Of the 150M preset: 206 reductions of 4 MiB before.
  constexpr int64_t kSize = 214'983'680;
  CHECK(GradientBuckets(kSize, gpu_bucket_values(kSize)).count() == 26);
}

}  // namespace farstep
