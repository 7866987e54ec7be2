#include "outer_optimizer/outer_optimizer.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/catch.h"
#include "trainer/base/checksum.h"

using namespace farstep;

namespace {

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (auto& value : values) value = normal(generator);
  return values;
}

}  // namespace

TEST_CASE("a constant delta of 1 gives the updates of torch's Nesterov SGD") {
  std::vector<float> theta{0}, momentum{0};
  const std::vector<float> mean{1};
  for (const double expected : {1.33, 1.897, 2.4073}) {
    const float before = theta[0];
    nesterov_step({.learning_rate = 0.7F, .momentum = 0.9F}, mean, theta, momentum);
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
    outer.apply(mean);
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
      const auto before = outer.checksum();
      const auto shown = outer.checksum_after(mean);
      REQUIRE(outer.checksum() == before);  // nothing has changed yet
      outer.apply(mean);
      REQUIRE(outer.checksum() == shown);
    }
  }
}

TEST_CASE("eta 1 and mu 0 make theta_global the mean of the sites") {
  const std::size_t size = 100;
  OuterOptimizer outer({.learning_rate = 1, .momentum = 0}, random_values(size, 1));
  const auto local = random_values(size, 2);
  std::vector<float> delta(size);
  REQUIRE(outer.delta(local, delta) == -1);
  outer.apply(delta);
  for (std::size_t k = 0; k < size; ++k) {
    REQUIRE(outer.theta_global()[k] == Approx(local[k]).margin(1e-6));
  }
}

TEST_CASE("the delta points from local to global and names the first value that is not finite") {
  OuterOptimizer outer({}, std::vector<float>{1, 2, 3, 4});
  std::vector<float> delta(4);
  REQUIRE(outer.delta(std::vector<float>{0, 2, 5, 4}, delta) == -1);
  REQUIRE(delta == std::vector<float>{1, 0, -2, 0});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  REQUIRE(outer.delta(std::vector<float>{0, 2, infinity, nan}, delta) == 2);
}
