#include "trainer/model/llama/feed_forward.h"

#include "trainer/model/llama/project.h"

namespace farstep {

at::Tensor feed_forward(const FeedForwardWeights& weights, const at::Tensor& x) {
  const auto gated = at::silu(project(x, weights.gate)) * project(x, weights.up);  // (B, T, F)
  return project(gated, weights.down);
}

}  // namespace farstep
