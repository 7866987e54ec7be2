// How many images a net names right.
#pragma once

#include <ATen/core/grad_mode.h>

#include <numeric>
#include <vector>

#include "trainer/data/image_set.h"
#include "trainer/model/batch_tensors.h"
#include "trainer/model/convnet/convnet.h"

namespace farstep {

// Returns the share of the first `count` images whose label has the largest logit.
inline double share_named(TrainableModel& model, const ImageSet& set, int64_t count) {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto batch = set.read(numbers);
  const auto tensors = batch_tensors(batch.view, 0, count, at::kCPU);
  const auto named = dynamic_cast<ConvNet&>(model).logits(tensors[0]).argmax(1).eq(tensors[1]);
  return named.sum().item<double>() / static_cast<double>(count);
}

}  // namespace farstep
