#include "heterogeneity/knowledge/gradient_noise.h"

#include <cmath>
#include <random>
#include <vector>

#include "heterogeneity/knowledge/round_timing.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {
namespace {

double expected_square(double squared_norm, double variance, double examples) {
  return squared_norm + variance / examples;
}

// A gradient of known mean and covariance: independent normal components.
class KnownGradient {
 public:
  KnownGradient(std::size_t size, uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < size; ++i) {
      mean_.push_back(0.3 * std::sin(static_cast<double>(i)));
      deviation_.push_back(0.2 + 0.05 * static_cast<double>(i % 7));
    }
  }

  double squared_norm() const {
    double sum = 0;
    for (const double one : mean_) sum += one * one;
    return sum;
  }
  double variance() const {
    double sum = 0;
    for (const double one : deviation_) sum += one * one;
    return sum;
  }

  // Returns the estimates of a step whose parts have these sizes, and whose batch has `more`
  // examples beside them.
  GradientNoise step(const std::vector<int>& sizes, int more) {
    std::vector<MeanGradient> parts;
    std::vector<double> sum(mean_.size());
    int examples = more;
    add_examples(sum, more);
    for (const int size : sizes) {
      std::vector<double> part(mean_.size());
      add_examples(part, size);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      parts.push_back({static_cast<double>(size), squared_norm_of(part, size)});
      examples += size;
    }
    const MeanGradient whole{static_cast<double>(examples), squared_norm_of(sum, examples)};
    const auto noise = noise_of_step(parts, whole, examples);
    REQUIRE(noise);
    return *noise;
  }

 private:
  void add_examples(std::vector<double>& sum, int examples) {
    for (int example = 0; example < examples; ++example) {
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += mean_[i] + deviation_[i] * normal_(random_);
      }
    }
  }
  static double squared_norm_of(const std::vector<double>& sum, int examples) {
    double squares = 0;
    for (const double one : sum) squares += one * one;
    return squares / (static_cast<double>(examples) * examples);
  }

  std::vector<double> mean_, deviation_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

// A mean over steps, and its standard error.
struct Estimate {
  void add(double value) {
    ++count;
    sum += value;
    squares += value * value;
  }
  double mean() const { return sum / count; }
  double error() const { return std::sqrt((squares / count - mean() * mean()) / count); }
  double count = 0, sum = 0, squares = 0;
};

TEST_CASE("expected norms give back gradient and variance exactly, for parts of any sizes") {
  const double squared_norm = 3, variance = 40;
  const std::vector<std::vector<double>> all_sizes{{1}, {4}, {2, 2}, {1, 5}, {3, 1, 2, 7}};
  for (const auto& sizes : all_sizes) {
    std::vector<MeanGradient> parts;
    for (const double size : sizes) {
      parts.push_back({size, expected_square(squared_norm, variance, size)});
    }
    const MeanGradient whole{32, expected_square(squared_norm, variance, 32)};
    const auto noise = noise_of_step(parts, whole, 8);
    REQUIRE(noise);
    CHECK(noise->examples == 8);
    CHECK(*noise->mean_squared_norm() == Approx(squared_norm));
    CHECK(*noise->mean_variance() == Approx(variance));
    CHECK(*noise->scale() == Approx(variance / squared_norm));
  }
}

TEST_CASE("estimates of drawn gradients agree with their mean and covariance") {
  const std::vector<std::pair<std::vector<int>, int>> steps{
      {{1}, 1}, {{2}, 6}, {{4, 4}, 0}, {{1, 3}, 4}, {{2, 2, 2, 2}, 0}, {{1, 2, 3, 4}, 6}};
  for (uint64_t seed = 1; const auto& [sizes, more] : steps) {
    KnownGradient gradient(60, seed++);
    Estimate squared_norm, variance;
    for (int step = 0; step < 2000; ++step) {
      const auto noise = gradient.step(sizes, more);
      squared_norm.add(*noise.mean_squared_norm());
      variance.add(*noise.mean_variance());
    }
    // Five standard errors: one of a million such tests fails by chance.
    CHECK(std::abs(squared_norm.mean() - gradient.squared_norm()) < 5 * squared_norm.error());
    CHECK(std::abs(variance.mean() - gradient.variance()) < 5 * variance.error());
    CHECK(variance.error() < 0.1 * gradient.variance());
  }
}

TEST_CASE("a step whose parts are as large as its batch shows no noise") {
  const MeanGradient one{4, 2};
  CHECK(!noise_of_step({}, one, 4));
  CHECK(!noise_of_step({&one, 1}, one, 4));
  CHECK(noise_of_step({&one, 1}, {5, 2}, 4));
}

TEST_CASE("a scale is known where the gradient stands above its noise, and is finite") {
  CHECK(!GradientNoise{}.scale());
  CHECK(!GradientNoise{}.mean_variance());
  CHECK(!GradientNoise{}.mean_squared_norm());
  CHECK(!GradientNoise{1, 0, 5}.scale());
  CHECK(!GradientNoise{1, -2, 5}.scale());
  CHECK(GradientNoise{1, 2, -5}.scale() == 0);
  CHECK(GradientNoise{4, 2, 6}.scale() == 3);
  CHECK(!GradientNoise{1, 1e-200, 1e200}.scale());
}

TEST_CASE("sites count by the examples that they measured") {
  std::vector<RoundTiming> timings(3);
  timings[0].noise = {30, 30 * 2.0, 30 * 8.0};
  timings[2].noise = {10, 10 * 6.0, 10 * 4.0};  // the second has measured nothing
  const auto noise = noise_of_round(timings);
  CHECK(*noise.mean_squared_norm() == 3);
  CHECK(*noise.mean_variance() == 7);
  CHECK(noise_of_round({}) == GradientNoise{});
}

TEST_CASE("rounds before count less, and a round without figures changes no average") {
  const GradientNoise first{8, 16, 64};
  CHECK(noise_after({}, first) == first);
  const auto still = noise_after(first, {});
  CHECK(*still.mean_variance() == *first.mean_variance());
  CHECK(*still.scale() == *first.scale());
  auto followed = first;
  for (int round = 0; round < 40; ++round) followed = noise_after(followed, {8, 8, 80});
  CHECK(*followed.scale() == Approx(10).epsilon(1e-3));
}

}  // namespace
}  // namespace farstep::heterogeneity
