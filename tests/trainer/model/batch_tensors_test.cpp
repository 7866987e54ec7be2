#include "trainer/model/batch_tensors.h"

#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

TEST_CASE("the tensors of a batch are rows of its parts") {
  std::vector<float> images(5 * 6);
  std::vector<int64_t> labels(5);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i) / 4;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(10 * i);
  BatchView batch{.examples = 5,
                  .targets = 5,
                  .parts = {{DType::kF32, {1, 2, 3}, std::as_bytes(std::span(images))},
                            {DType::kI64, {}, std::as_bytes(std::span(labels))}},
                  .text = "images"};
  const auto tensors = batch_tensors(batch, 2, 2, at::kCPU);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].sizes() == at::IntArrayRef({2, 1, 2, 3}));
  CHECK(tensors[0][1][0][1][2].item<float>() == images[3 * 6 + 5]);
  CHECK(tensors[1].sizes() == at::IntArrayRef({2}));
  CHECK(tensors[1][1].item<int64_t>() == 30);

  CHECK_THROWS_AS(batch_tensors(batch, 4, 2, at::kCPU), InternalError);
  CHECK_THROWS_AS(batch_tensors(batch, 0, 0, at::kCPU), InternalError);
  batch.parts[1].bytes = batch.parts[1].bytes.first(8);
  CHECK_THROWS_AS(batch_tensors(batch, 0, 1, at::kCPU), InternalError);
}

}  // namespace farstep
