// What inner steps measure of the gradient's noise, against float64 norms of the same examples.
#include <cmath>
#include <future>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/inner/quadratic_model.h"
#include "trainer/inner/inner_step.h"
#include "trainer/reduction/host_reduction.h"

namespace farstep {
namespace {

const StepTerms kMeasured{0.5, /*learning_rate_factor=*/1, /*measures_noise=*/true};

// Values stay 0. Clipping, which comes after the measurement, would shrink each gradient.
InnerConfig still(ReductionKind reduction) {
  InnerConfig config;
  config.optimizer = InnerOptimizer::kSgd;
  config.rate.peak_learning_rate = 0;
  config.clip_norm = 0.01;
  config.reduction = reduction;
  return config;
}

struct QuadraticSite {
  explicit QuadraticSite(std::size_t devices, ReductionKind reduction = ReductionKind::kBuckets) {
    std::vector<std::unique_ptr<Replica>> replicas;
    while (replicas.size() + 1 < devices) {
      replicas.push_back(
          std::make_unique<Replica>([] { return std::make_unique<QuadraticModel>(); }));
    }
    step = std::make_unique<InnerStep>(model, still(reduction), std::move(replicas));
  }
  QuadraticModel model;
  std::unique_ptr<InnerStep> step;
};

using Shares = std::vector<int64_t>;

// The first micro-batches of devices with these shares, from example `first` on.
std::vector<heterogeneity::MeanGradient> true_parts(const TokenBatch& batch, const Shares& shares,
                                                    int64_t micro_batch, int64_t first = 0) {
  std::vector<heterogeneity::MeanGradient> parts;
  for (const int64_t share : shares) {
    const int64_t size = std::min(share, micro_batch);
    if (size > 0) {
      parts.push_back({static_cast<double>(size), squared_norm_at_zero(batch, first, size)});
    }
    first += share;
  }
  return parts;
}

heterogeneity::MeanGradient true_whole(const TokenBatch& batch) {
  return {static_cast<double>(batch.sequences), squared_norm_at_zero(batch, 0, batch.sequences)};
}

void check_equal(const heterogeneity::GradientNoise& found,
                 const heterogeneity::GradientNoise& wanted) {
  CHECK(found.examples == wanted.examples);
  CHECK(found.squared_norm == Approx(wanted.squared_norm).epsilon(1e-4));
  CHECK(found.variance == Approx(wanted.variance).epsilon(1e-4));
}

TEST_CASE("a step's noise is that of the float64 norms, over devices and micro-batches") {
  const std::vector<std::pair<Shares, int64_t>> splits{
      {{8}, 2},    {{7}, 3},    {{4, 4}, 4}, {{4, 4}, 1},       {{6, 2}, 3},
      {{5, 3}, 8}, {{8, 0}, 2}, {{0, 8}, 2}, {{2, 2, 2, 2}, 2}, {{5, 1, 1, 3}, 2}};
  std::mt19937_64 random(7);
  for (const auto reduction : {ReductionKind::kBuckets, ReductionKind::kMaster}) {
    for (const auto& [shares, micro_batch] : splits) {
      QuadraticSite site(shares.size(), reduction);
      const auto batch =
          drawn_points(std::accumulate(shares.begin(), shares.end(), int64_t{0}), random);
      const auto result = site.step->run(batch, shares, micro_batch, kMeasured);
      const auto parts = true_parts(batch, shares, micro_batch);
      const auto wanted = noise_of_step(parts, true_whole(batch), double(batch.sequences));
      REQUIRE(result.noise);
      check_equal(*result.noise, *wanted);
      // Nothing is measured unless it is wanted.
      CHECK(!site.step->run(batch, shares, micro_batch, 0.5).noise);
    }
  }
}

TEST_CASE("one micro-batch on one device shows no noise") {
  std::mt19937_64 random(7);
  QuadraticSite alone(1), idle(2);
  const auto batch = drawn_points(4, random);
  CHECK(!alone.step->run(batch, 4, kMeasured).noise);
  CHECK(!alone.step->run(drawn_points(1, random), 1, kMeasured).noise);
  CHECK(!idle.step->run(batch, Shares{4, 0}, 4, kMeasured).noise);
}

TEST_CASE("the noise of many steps is that of the points, over 1, 2 and 4 devices") {
  double squared_norm = 0, variance = 0;
  for (int64_t i = 0; i < kPointSize; ++i) {
    double sum = 0, squares = 0;
    for (int64_t token = 0; token < kPoints; ++token) {
      sum += point(token, i);
      squares += point(token, i) * point(token, i);
    }
    squared_norm += std::pow(sum / kPoints, 2);
    variance += squares / kPoints - std::pow(sum / kPoints, 2);
  }
  std::mt19937_64 random(11);
  const std::vector<std::pair<Shares, int64_t>> splits{
      {{8}, 4}, {{16}, 4}, {{4, 4}, 4}, {{2, 2, 2, 2}, 2}, {{6, 3, 2, 5}, 2}};
  for (const auto& [shares, micro_batch] : splits) {
    QuadraticSite site(shares.size());
    constexpr int kSteps = 600;
    double sums[2] = {}, squares[2] = {};
    for (int i = 0; i < kSteps; ++i) {
      const auto examples = std::accumulate(shares.begin(), shares.end(), int64_t{0});
      const auto noise =
          *site.step->run(drawn_points(examples, random), shares, micro_batch, kMeasured).noise;
      const double found[] = {*noise.mean_squared_norm(), *noise.mean_variance()};
      for (int which = 0; which < 2; ++which) {
        sums[which] += found[which];
        squares[which] += found[which] * found[which];
      }
    }
    const double wanted[] = {squared_norm, variance};
    for (int which = 0; which < 2; ++which) {
      const double mean = sums[which] / kSteps;
      const double error = std::sqrt((squares[which] / kSteps - mean * mean) / kSteps);
      CHECK(std::abs(mean - wanted[which]) < 5 * error);
    }
  }
}

// A site's seat in the sum of two sites' mean gradients. The coefficients are applied here, as an
// exchange does it.
class NoisySeat : public SiteReduction {
 public:
  NoisySeat(HostReduction& all, std::size_t place, std::span<float> gradients, double coefficient)
      : all_(all), place_(place), gradients_(gradients), coefficient_(coefficient) {}
  void begin_step() override {}
  void ready(std::size_t, int64_t begin, int64_t end) override {
    for (auto& value : gradients_.subspan(static_cast<std::size_t>(begin),
                                          static_cast<std::size_t>(end - begin))) {
      value *= static_cast<float>(coefficient_);
    }
    all_.ready(place_, begin, end);
  }
  bool finish(std::size_t) override { return all_.finish(place_); }
  void abandon() override { all_.abandon(); }
  double coefficient() const override { return has_sum ? coefficient_ : 0; }

  bool has_sum = true;

 private:
  HostReduction& all_;
  const std::size_t place_;
  const std::span<float> gradients_;
  const double coefficient_;
};

TEST_CASE("sites that sum their gradients measure their own parts against the mean of all") {
  std::mt19937_64 random(3);
  // The second site has two devices. Batches of 2 and 6, so the coefficients are 1/4 and 3/4.
  for (const int64_t micro_batch : {8, 2}) {
    QuadraticSite first(1), second(2);
    HostReduction all({first.step->host_gradients(), second.step->host_gradients()}, 100,
                      [](int64_t begin, int64_t end, const auto& work) { work(begin, end); });
    NoisySeat seats[] = {{all, 0, first.step->host_gradients(), 0.25},
                         {all, 1, second.step->host_gradients(), 0.75}};
    const auto batch = drawn_points(8, random);
    const TokenBatch own[] = {
        {.sequences = 2, .length = 1, .tokens = {batch.tokens.begin(), batch.tokens.begin() + 4}},
        {.sequences = 6, .length = 1, .tokens = {batch.tokens.begin() + 4, batch.tokens.end()}}};
    const Shares shares[] = {{2}, {2, 4}};
    for (const bool has_sum : {true, false}) {
      seats[1].has_sum = has_sum;
      all.begin_step();
      auto other = std::async(std::launch::async, [&] {
        return second.step->run_across(own[1], shares[1], micro_batch, kMeasured, seats[1]);
      });
      const StepResult results[] = {
          first.step->run_across(own[0], shares[0], micro_batch, kMeasured, seats[0]), other.get()};
      const auto whole = true_whole(batch);
      REQUIRE(results[0].noise);
      check_equal(*results[0].noise,
                  *noise_of_step(true_parts(batch, shares[0], micro_batch, 0), whole, 2));
      // As a site that does not get the sum, when one master updates.
      REQUIRE(results[1].noise.has_value() == has_sum);
      if (!has_sum) continue;
      check_equal(*results[1].noise,
                  *noise_of_step(true_parts(batch, shares[1], micro_batch, 2), whole, 6));
    }
  }
}

TEST_CASE("the learning rate's factor multiplies the schedule's rate") {
  std::mt19937_64 random(3);
  InnerConfig config;
  config.rate.peak_learning_rate = 0.1;
  QuadraticModel model;
  InnerStep step(model, config);
  const auto batch = drawn_points(2, random);
  const double plain = step.run(batch, 2, 0.5).learning_rate;
  CHECK(step.run(batch, 2, {0.5, 3, false}).learning_rate == Approx(3 * plain));
}

}  // namespace
}  // namespace farstep
