#include "outer_optimizer/outer_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/catch.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

namespace {

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (auto& value : values) value = normal(generator);
  return values;
}

Range all_of(const OuterOptimizer& outer) {
  return {0, std::ssize(outer.theta_global())};
}

}  // namespace

TEST_CASE("a constant delta of 1 gives the updates of torch's Nesterov SGD") {
  std::vector<float> theta{0}, momentum{0};
  const std::vector<float> mean{1};
  for (const double expected : {1.33, 1.897, 2.4073}) {
    const float before = theta[0];
    take_outer_step(OuterStep::kNesterov, {.learning_rate = 0.7F, .momentum = 0.9F}, mean, theta,
                    momentum);
    REQUIRE(before - theta[0] == Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("many random steps follow the formula in double precision") {
  const std::size_t size = 257;
  OuterOptimizer outer({.learning_rate = 0.6F, .momentum = 0.8F}, random_values(size, 1));
  std::vector<double> theta(outer.theta_global().begin(), outer.theta_global().end());
  std::vector<double> momentum(size);
  for (unsigned round = 0; round < 50; ++round) {
    const auto mean = random_values(size, 100 + round);
    outer.apply(all_of(outer), mean);
    for (std::size_t k = 0; k < size; ++k) {
      momentum[k] = double{0.8F} * momentum[k] + mean[k];
      theta[k] -= double{0.6F} * (mean[k] + double{0.8F} * momentum[k]);
    }
  }
  for (std::size_t k = 0; k < size; ++k) {
    REQUIRE(std::abs(outer.theta_global()[k] - theta[k]) < 1e-4);
  }
}

TEST_CASE("the checksum shown before the step is the checksum after it") {
  for (const std::size_t size : {0, 1, 3, 16383, 16384, 16385, 50000}) {
    OuterOptimizer outer({}, random_values(size, 7));
    for (unsigned round = 0; round < 3; ++round) {
      const auto mean = random_values(size, 10 + round);
      const auto all = all_of(outer);
      const auto before = outer.checksum(all);
      const auto step = round == 1 ? OuterStep::kMean : OuterStep::kNesterov;
      const auto shown = outer.checksum_after(0, all, mean, step);
      REQUIRE(outer.checksum(all) == before);  // nothing has changed yet
      outer.apply(all, mean, step);
      REQUIRE(outer.checksum(all) == shown);
    }
  }
}

TEST_CASE(
    "theta_global becomes the mean of the sites by eta 1 and mu 0, and by the step to the mean") {
  const std::size_t size = 100;
  const auto local = random_values(size, 2);
  const auto check = [&](const NesterovSettings& settings, OuterStep step) {
    OuterOptimizer outer(settings, random_values(size, 1));
    std::vector<float> delta(size);
    for (int round = 0; round < 2; ++round) {  // in the second there is a momentum
      outer.apply(all_of(outer), random_values(size, 3));
      REQUIRE(outer.delta(all_of(outer), local, delta) == -1);
      outer.apply(all_of(outer), delta, step);
      for (std::size_t k = 0; k < size; ++k) {
        REQUIRE(outer.theta_global()[k] == Approx(local[k]).margin(1e-6));
      }
    }
  };
  check({.learning_rate = 1, .momentum = 0}, OuterStep::kNesterov);
  check({.learning_rate = 0.7F, .momentum = 0.9F}, OuterStep::kMean);
}

TEST_CASE("the momentum is the same after both kinds of step") {
  const auto mean = random_values(9, 2);
  OuterOptimizer one({}, random_values(9, 1)), other({}, random_values(9, 1));
  for (const auto step : {OuterStep::kNesterov, OuterStep::kMean, OuterStep::kNesterov}) {
    one.apply(all_of(one), mean, step);
    other.apply(all_of(other), mean);
    REQUIRE(std::ranges::equal(one.momentum(), other.momentum()));
  }
  REQUIRE_FALSE(std::ranges::equal(one.theta_global(), other.theta_global()));
}

TEST_CASE("the delta points from local to global and names the first value that is not finite") {
  OuterOptimizer outer({}, std::vector<float>{1, 2, 3, 4});
  std::vector<float> delta(4);
  REQUIRE(outer.delta({0, 4}, std::vector<float>{0, 2, 5, 4}, delta) == -1);
  REQUIRE(delta == std::vector<float>{1, 0, -2, 0});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  REQUIRE(outer.delta({0, 4}, std::vector<float>{0, 2, infinity, nan}, delta) == 2);
  delta.resize(2);
  REQUIRE(outer.delta({2, 4}, std::vector<float>{3, nan}, delta) == 3);
}

TEST_CASE("a step of all fragments is the step of the whole") {
  const int64_t size = 40'001;
  const auto theta = random_values(size, 1);
  const auto mean = random_values(size, 2);
  OuterOptimizer whole({}, theta);
  for (int round = 0; round < 3; ++round) whole.apply({0, size}, mean);
  for (const int fragments : {1, 2, 3, 7}) {
    OuterOptimizer parts({}, theta);
    for (int round = 0; round < 3; ++round) {
      for (int fragment = 0; fragment < fragments; ++fragment) {
        const auto range = equal_part(size, fragment, fragments);
        const auto own_mean = std::span(mean).subspan(range.begin, range.size());
        const auto shown = parts.checksum_after(0, range, own_mean);
        const auto shown_alone = parts.checksum_after(range.begin, range, own_mean);
        parts.apply(range, own_mean);
        REQUIRE(parts.checksum({0, range.end}) == shown);
        REQUIRE(parts.checksum(range) == shown_alone);
      }
    }
    REQUIRE(parts.checksum({0, size}) == whole.checksum({0, size}));
  }
}

TEST_CASE("a merge keeps the share alpha of theta_local") {
  const OuterOptimizer outer({}, std::vector<float>{1, 5, 6, 4});
  std::vector<float> local{3, 2, 1, 0};
  outer.merge({3, 4}, 0.25F, std::span(local).subspan(3));
  outer.merge({0, 1}, 0.75F, std::span(local).first(1));
  REQUIRE(local == std::vector<float>{2.5F, 2, 1, 3});
  outer.merge({0, 4}, 1, local);
  REQUIRE(local == std::vector<float>{2.5F, 2, 1, 3});
  outer.merge({0, 4}, 0, local);
  REQUIRE(local == std::vector<float>{1, 5, 6, 4});
}

TEST_CASE("values of another size than their range are a defect") {
  OuterOptimizer outer({}, std::vector<float>(4));
  std::vector<float> three(3);
  REQUIRE_THROWS_AS(outer.delta({0, 4}, three, three), InternalError);
  REQUIRE_THROWS_AS(outer.delta({2, 5}, three, three), InternalError);
  REQUIRE_THROWS_AS(outer.apply({0, 4}, three), InternalError);
  REQUIRE_THROWS_AS(outer.merge({0, 4}, 0, three), InternalError);
}
