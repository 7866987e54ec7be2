#include "outer_optimizer/schedule/averaging.h"

#include <numeric>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

namespace {

constexpr AveragingRule kRules[] = {AveragingRule::kUniform, AveragingRule::kTokens,
                                    AveragingRule::kBatch, AveragingRule::kFedNova,
                                    AveragingRule::kTokensSquaredPerStep};

Work work(int64_t steps, int64_t batch) {
  return {steps, batch, steps * batch * 128};
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

TEST_CASE("equal work gives the plain mean under every rule") {
  for (const auto rule : kRules) {
    for (const std::size_t num_sites : {1, 2, 4, 7}) {
      const std::vector<Work> works(num_sites, work(100, 4));
      for (const double coefficient : averaging_coefficients(rule, works)) {
        REQUIRE(coefficient == Approx(1.0 / static_cast<double>(num_sites)).epsilon(1e-15));
      }
    }
  }
}

TEST_CASE("each rule weighs unequal sites by its own formula") {
  const std::vector<Work> works{work(100, 4), work(50, 12)};
  using Coefficients = std::vector<double>;
  const auto of = [&](AveragingRule rule) { return averaging_coefficients(rule, works); };
  REQUIRE(of(AveragingRule::kUniform) == Coefficients{0.5, 0.5});
  REQUIRE(of(AveragingRule::kBatch) == Coefficients{0.25, 0.75});
  REQUIRE(of(AveragingRule::kTokens) == Coefficients{0.4, 0.6});
  // T^2/H is proportional to 400^2/100 = 1600 and 600^2/50 = 7200.
  const auto squared = of(AveragingRule::kTokensSquaredPerStep);
  REQUIRE(squared[0] == Approx(1600.0 / 8800));
  REQUIRE(squared[1] == Approx(7200.0 / 8800));
  // tau = 0.4 * 100 + 0.6 * 50 = 70: 70 * 0.4 / 100 and 70 * 0.6 / 50.
  const auto fednova = of(AveragingRule::kFedNova);
  REQUIRE(fednova[0] == Approx(0.28));
  REQUIRE(fednova[1] == Approx(0.84));
}

TEST_CASE("fednova is batch weights times a factor, by which it takes as many steps as tokens") {
  const std::vector<Work> works{work(14, 4), work(34, 16), work(18, 8), work(1, 3)};
  const auto steps_of = [&](const std::vector<double>& coefficients) {
    double steps = 0;
    for (std::size_t i = 0; i < works.size(); ++i) {
      steps += coefficients[i] * static_cast<double>(works[i].steps);
    }
    return steps;
  };
  const auto fednova = averaging_coefficients(AveragingRule::kFedNova, works);
  const auto batch = averaging_coefficients(AveragingRule::kBatch, works);
  for (std::size_t i = 1; i < works.size(); ++i) {
    REQUIRE(fednova[i] / fednova[0] == Approx(batch[i] / batch[0]).epsilon(1e-14));
  }
  const auto tokens = averaging_coefficients(AveragingRule::kTokens, works);
  REQUIRE(steps_of(fednova) == Approx(steps_of(tokens)).epsilon(1e-14));
}

TEST_CASE("weights that differ never cancel to equal ones") {
  const std::vector<Work> works{work(100, 4), work(100, 8)};
  for (const auto rule : kRules) {
    if (rule == AveragingRule::kUniform) continue;
    const auto coefficients = averaging_coefficients(rule, works);
    REQUIRE(coefficients[1] > 1.9 * coefficients[0]);
    REQUIRE(sum_of(coefficients) == Approx(1).epsilon(1e-15));
  }
}

TEST_CASE("a site without work is in no sum and no mean") {
  for (const auto rule : kRules) {
    const std::vector<Work> with{work(100, 4), Work{}, work(80, 6)};
    const std::vector<Work> without{work(100, 4), work(80, 6)};
    const auto coefficients = averaging_coefficients(rule, with);
    const auto expected = averaging_coefficients(rule, without);
    REQUIRE(coefficients[0] == expected[0]);
    REQUIRE(coefficients[1] == 0);
    REQUIRE(coefficients[2] == expected[1]);
  }
}

TEST_CASE("the mean of a sync to which nobody brings work is 0") {
  for (const auto rule : kRules) {
    CHECK(averaging_coefficients(rule, std::vector<Work>(3)) == std::vector<double>(3));
  }
}

TEST_CASE("a site that was stopped counts by the share of its planned steps") {
  const auto stopped = [](int64_t steps) {
    auto some = work(steps, 6);
    some.missing_steps = 100 - steps;
    return some;
  };
  for (const auto rule : {AveragingRule::kUniform, AveragingRule::kBatch}) {
    const double batch = rule == AveragingRule::kBatch ? 6.0 / 4 : 1;
    for (const int64_t steps : {1, 25, 99, 100}) {
      const auto both =
          averaging_coefficients(rule, std::vector<Work>{work(100, 4), stopped(steps)});
      CHECK(both[1] / both[0] == Approx(batch * static_cast<double>(steps) / 100));
      CHECK(sum_of(both) == Approx(1).epsilon(1e-15));
    }
  }
  // The others count the steps as they are.
  for (const auto rule :
       {AveragingRule::kTokens, AveragingRule::kFedNova, AveragingRule::kTokensSquaredPerStep}) {
    CHECK(averaging_coefficients(rule, std::vector<Work>{work(100, 4), stopped(25)}) ==
          averaging_coefficients(rule, std::vector<Work>{work(100, 4), work(25, 6)}));
  }
}
