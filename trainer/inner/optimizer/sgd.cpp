#include "trainer/inner/optimizer/sgd.h"

namespace farstep {

// Neighbours are one range. LibTorch rounds the last few values of a range otherwise than the rest,
// so the whole model in one range has the bits of one subtraction of whole vectors.
Sgd::Sgd(Parameters& parameters, std::span<const ParameterSpec> groups)
    : HostOptimizer(parameters) {
  for (const auto& group : groups) {
    if (ranges_.empty() || ranges_.back().end != group.offset) {
      ranges_.push_back({group.offset, group.offset});
    }
    ranges_.back().end = group.end();
  }
}

void Sgd::change_values(double learning_rate, double gradient_factor) {
  for (const auto& [begin, end] : ranges_) {
    parameters()
        .values()
        .narrow(0, begin, end - begin)
        .sub_(parameters().gradients().narrow(0, begin, end - begin),
              learning_rate * gradient_factor);
  }
}

}  // namespace farstep
