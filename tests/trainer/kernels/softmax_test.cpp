#include "trainer/kernels/softmax.h"

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

namespace {

struct SoftmaxReference {
  std::vector<double> probabilities, log_sums, score_gradient;
};

SoftmaxReference reference(const ScoreTile& tile, const std::vector<float>& scores,
                           const std::vector<float>& dp) {
  SoftmaxReference result{.probabilities = std::vector<double>(scores.size()),
                          .log_sums = {},
                          .score_gradient = std::vector<double>(scores.size())};
  for (int64_t row = 0; row < tile.rows; ++row) {
    const auto begin = static_cast<std::size_t>(row * tile.columns);
    const auto end = begin + static_cast<std::size_t>(tile.first + row + 1);
    double largest = -HUGE_VAL;
    for (auto i = begin; i < end; ++i) {
      largest = std::max(largest, static_cast<double>(scores[i]) * tile.scale);
    }
    double sum = 0;
    for (auto i = begin; i < end; ++i) {
      sum += std::exp(static_cast<double>(scores[i]) * tile.scale - largest);
    }
    result.log_sums.push_back(largest + std::log(sum));
    double mean = 0;
    for (auto i = begin; i < end; ++i) {
      const double score = static_cast<double>(scores[i]) * tile.scale;
      result.probabilities[i] = std::exp(score - result.log_sums.back());
      mean += result.probabilities[i] * dp[i];
    }
    for (auto i = begin; i < end; ++i) {
      result.score_gradient[i] = result.probabilities[i] * (dp[i] - mean) * tile.scale;
    }
  }
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("the causal softmax and its gradient are those of fp64", "", float, BF16) {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const double spread = GENERATE(0.1, 3.0, 200.0);
  for (const auto& tile :
       {ScoreTile{0, 1, 1, 1.0F}, ScoreTile{0, 5, 5, 0.125F}, ScoreTile{3, 4, 9, 0.3F},
        ScoreTile{0, 64, 64, 0.25F}, ScoreTile{100, 17, 117, 1.0F}, ScoreTile{0, 0, 4, 1.0F}}) {
    const auto scores = random_values(tile.rows * tile.columns, spread);
    const auto dp = random_values(tile.rows * tile.columns);
    const auto wanted = reference(tile, scores, dp);
    std::vector<TestType> probabilities(scores.size(), rounded<TestType>(9)), again(probabilities);
    std::vector<TestType> gradient(probabilities);
    std::vector<float> log_sums(static_cast<std::size_t>(tile.rows));
    auto overwritten = scores;
    causal_softmax(tile, overwritten.data(), probabilities.data(), log_sums.data());
    const double tolerance = kTolerance<TestType> + 1e-6 * spread;
    CHECK(relative_error(probabilities, wanted.probabilities) < tolerance);
    CHECK(relative_error(log_sums, wanted.log_sums) < 1e-6);
    overwritten = scores;
    causal_softmax_backward(tile, overwritten.data(), log_sums.data(), dp.data(), again.data(),
                            gradient.data());
    CHECK(relative_error(again, wanted.probabilities) < tolerance);
    // Where one key has it all, the gradient is what is left of numbers that cancel.
    if (spread < 10 && tile.columns > 1) {
      CHECK(relative_error(gradient, wanted.score_gradient) < tolerance + 1e-5);
    }
  }
}

}  // namespace farstep
