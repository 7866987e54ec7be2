#include "heterogeneity/policy/batch_growth.h"

#include <limits>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {
namespace {

using Catch::Contains;

PlanConfig growing(int64_t most_batch, double most_factor = 2) {
  PlanConfig config;
  config.base_batch = 4;
  config.micro_batch = 2;
  config.batch_growth = BatchGrowth{.most_batch = most_batch, .most_factor = most_factor};
  return config;
}

TEST_CASE("the base batch follows the noise scale in proportion, in whole micro-batches") {
  const auto config = growing(1000, 16);
  // Three sites of 4, so their 12 sequences are held against the scale.
  CHECK(grown_batch(config, 4, 12, 36) == 12);
  CHECK(grown_batch(config, 4, 12, 35) == 10);
  CHECK(grown_batch(config, 4, 12, 17.9) == 4);
  CHECK(grown_batch(config, 4, 12, 18) == 6);
  // A base batch that is no multiple of the micro-batch stays until the next one is reached.
  CHECK(grown_batch(config, 5, 5, 5.9) == 5);
  CHECK(grown_batch(config, 5, 5, 6) == 6);
}

TEST_CASE("it grows by a bounded factor, to a limit, and never shrinks") {
  auto config = growing(20);
  CHECK(grown_batch(config, 4, 4, 1e300) == 8);
  CHECK(grown_batch(config, 16, 16, 1e300) == 20);
  CHECK(grown_batch(config, 20, 20, 1e300) == 20);
  CHECK(grown_batch(config, 32, 32, 1e300) == 32);
  for (const double scale : {0.0, 1.0, 3.999, 4.0}) CHECK(grown_batch(config, 4, 4, scale) == 4);
  config.batch_growth->most_batch = 21;
  CHECK(grown_batch(config, 16, 16, 1e300) == 20);  // 21 is no multiple of 2
  config.batch_growth->most_factor = 1;
  CHECK(grown_batch(config, 4, 4, 100) == 4);
}

TEST_CASE("it stays while the noise scale is not known, and where growth is off") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto config = growing(1000);
  CHECK(grown_batch(config, 4, 4, std::nullopt) == 4);
  CHECK(grown_batch(config, 4, 4, kNan) == 4);
  CHECK(grown_batch(config, 4, 4, kInfinity) == 4);
  CHECK(grown_batch(config, 4, 0, 100) == 4);
  auto off = config;
  off.batch_growth.reset();
  CHECK(grown_batch(off, 4, 4, 100) == 4);
}

TEST_CASE("learning rates stay, or grow with the root of the base batch") {
  auto config = growing(100);
  CHECK(learning_rate_factor(config, 16) == 1);
  config.batch_growth->learning_rate = LearningRateRule::kSqrt;
  CHECK(learning_rate_factor(config, 4) == 1);
  CHECK(learning_rate_factor(config, 16) == 2);
  config.batch_growth.reset();
  CHECK(learning_rate_factor(config, 16) == 1);
}

std::string refusal(const PlanConfig& config, const std::vector<RunSite>& sites) {
  try {
    check_batch_growth(config, sites, "run.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a run whose batch cannot grow is refused with the path and the remedy") {
  std::vector<RunSite> sites(2);
  CHECK(refusal(growing(4), sites).empty());
  CHECK_THAT(refusal(growing(3), sites),
             Contains("run.json") && Contains("plan.batch_growth.most_batch") && Contains("is 3"));
  auto critical = growing(8);
  critical.critical_batch = 16;
  CHECK_THAT(refusal(critical, sites), Contains("plan.critical_batch"));
  auto whole = growing(8);
  whole.micro_batch = 3;
  CHECK_THAT(refusal(whole, sites), Contains("plan.micro_batch") && Contains("is 3"));
  whole.micro_batch.reset();
  CHECK_THAT(refusal(whole, sites), Contains("is null") && Contains("half of plan.base_batch, 4"));
  // Two sites that sum their gradients measure against the sum; one has nobody to sum with.
  whole.equal_steps = true;
  CHECK(refusal(whole, sites).empty());
  CHECK_THAT(refusal(whole, {RunSite{}}), Contains("plan.micro_batch"));
  sites[1].batch = 8;
  CHECK_THAT(refusal(growing(8), sites), Contains("sites[1].batch"));
  auto off = growing(8);
  off.batch_growth.reset();
  CHECK(refusal(off, sites).empty());
}

}  // namespace
}  // namespace farstep::heterogeneity
