// A model whose gradients a test knows exactly: the loss of an example is half the squared distance
// of the values from a point, which its tokens choose. So the gradient's mean is the values less
// the mean point, and its covariance is that of the points.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "trainer/data/tokens/token_batch.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

constexpr int64_t kPoints = 11;
constexpr int64_t kPointSize = 300;

// Component i of point `token`.
inline double point(int64_t token, int64_t i) {
  return std::sin(static_cast<double>((token + 1) * (i + 3))) +
         0.05 * std::cos(static_cast<double>(i));
}

class QuadraticModel : public TrainableModel {
 public:
  QuadraticModel() : parameters_(layout(), at::kCPU) {}

  Parameters& parameters() override { return parameters_; }
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& /*stop*/) override {
    return at::zeros({}) * batch.front().size(0);
  }
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override {
    const at::Tensor& tokens = batch.front();  // (examples, 2): the point, and the one target
    auto* const gradients = parameters_.gradients().mutable_data_ptr<float>();
    const auto* const values = parameters_.values().const_data_ptr<float>();
    // From the end, in parts, as backward goes.
    for (int64_t end = kPointSize; end > 0; end -= kPointSize / 3) {
      const int64_t begin = end - kPointSize / 3;
      for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (int64_t example = 0; example < tokens.size(0); ++example) {
          sum += values[i] - point(tokens.const_data_ptr<int64_t>()[2 * example], i);
        }
        const auto gradient = static_cast<float>(pass.scale * sum);
        gradients[i] = pass.add ? gradients[i] + gradient : gradient;
      }
      if (pass.ready) pass.ready(begin, end);
    }
    return at::zeros({});
  }

 private:
  static std::vector<ParameterSpec> layout() {
    LayoutBuilder builder;
    builder.weight("values", {kPointSize}, 1);
    return builder.finish();
  }

  Parameters parameters_;
};

inline TokenBatch drawn_points(int64_t examples, std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> draw(0, kPoints - 1);
  TokenBatch batch{.sequences = examples, .length = 1, .tokens = {}};
  for (int64_t i = 0; i < examples; ++i) {
    batch.tokens.push_back(draw(random));
    batch.tokens.push_back(0);
  }
  return batch;
}

// The squared norm of the mean gradient of examples [first, first + count), at values of 0.
inline double squared_norm_at_zero(const TokenBatch& batch, int64_t first, int64_t count) {
  double squares = 0;
  for (int64_t i = 0; i < kPointSize; ++i) {
    double sum = 0;
    for (int64_t example = first; example < first + count; ++example) {
      sum -= point(batch.tokens[static_cast<std::size_t>(2 * example)], i);
    }
    squares += std::pow(sum / static_cast<double>(count), 2);
  }
  return squares;
}

}  // namespace farstep
