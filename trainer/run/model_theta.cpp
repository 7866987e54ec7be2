#include "trainer/run/model_theta.h"

namespace farstep {

std::span<float> ModelTheta::pull(const outer_optimizer::Range& range) {
  return mirror_.pull(range.begin, range.size());
}

void ModelTheta::start_pull(const outer_optimizer::Range& range) {
  mirror_.start_pull(range.begin, range.size());
}

std::span<float> ModelTheta::finish_pull() {
  return mirror_.finish_pull();
}

void ModelTheta::push(const outer_optimizer::Range& range, std::span<const float> values) {
  mirror_.push(range.begin, values);
}

}  // namespace farstep
