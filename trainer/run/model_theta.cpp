#include "trainer/run/model_theta.h"

namespace farstep {

std::span<float> ModelTheta::pull(const Range& range) {
  return mirror_.pull(range.begin, range.size());
}

void ModelTheta::start_pull(const Range& range) {
  mirror_.start_pull(range.begin, range.size());
}

std::span<float> ModelTheta::finish_pull() {
  return mirror_.finish_pull();
}

void ModelTheta::push(const Range& range, std::span<const float> values) {
  mirror_.push(range.begin, values);
}

}  // namespace farstep
