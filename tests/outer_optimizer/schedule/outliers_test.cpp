#include "outer_optimizer/schedule/outliers.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.h"

namespace farstep::outer_optimizer {
namespace {

constexpr double kRates = 0.02;

// A site of which 8 deltas are known, whose paces were near 1.
DeltaFigures known(double pace, double spread = 0.05) {
  return {
      .norm = kRates * std::exp(pace), .usual_pace = 1, .pace_spread = spread, .known_paces = 8};
}

DeltaFigures unknown(double pace) {
  return {.norm = kRates * std::exp(pace)};
}

// Returns the verdicts as letters: . in proportion, w with a reason, x left out.
std::string verdicts(const std::vector<std::optional<DeltaFigures>>& figures,
                     OutlierRule rule = OutlierRule::kLeaveOut) {
  const std::vector<Work> works(figures.size(), {.steps = 10, .rates = kRates});
  std::string letters;
  for (const auto& [is_left_out, reason] : judge(rule, works, figures)) {
    REQUIRE_FALSE((is_left_out && reason.empty()));
    letters += is_left_out ? 'x' : reason.empty() ? '.' : 'w';
  }
  return letters;
}

TEST_CASE("a value that the steps cannot make is left out whatever the other sites do") {
  const auto with = [](double largest, double bound) {
    auto figures = unknown(1);
    figures.largest = largest;
    figures.bound = bound;
    return figures;
  };
  CHECK(verdicts({with(2, 1)}) == ".");
  CHECK(verdicts({with(2.001, 1)}) == "x");
  CHECK(verdicts({with(1e30, 0)}) == ".");  // no bound is known
  CHECK(verdicts({with(1e30, 1), with(1, 1)}) == "x.");
  CHECK(verdicts({with(1e30, 1), with(3, 1), with(0, 1)}) == "xx.");
}

TEST_CASE("a pace is compared with the site's own and then with the others'") {
  struct Row {
    std::vector<std::optional<DeltaFigures>> figures;
    std::string verdicts;
  };
  const double warned = std::log(3.1), below = std::log(7.9), above = std::log(8.1);
  const std::vector<Row> table = {
      {{}, ""},
      {{known(1)}, "."},
      {{known(9)}, "."},  // alone, nobody knows
      {{known(1), known(1)}, ".."},
      {{known(1 + warned), known(1)}, "w."},
      {{known(1 + below), known(1)}, "w."},
      {{known(1 + above), known(1)}, "x."},
      {{known(1), known(-5)}, ".."},  // one that is too small harms nobody
      {{known(1 + above), known(1.6)}, "w."},
      {{known(9), known(1.7)}, ".."},  // of two that both move, nobody knows which is right
      {{known(5), known(5), known(5)}, "..."},  // as after a change of the schedule
      {{known(9), known(5), known(5)}, "x.."},
      {{known(9, 1.0), known(1), known(1)}, "w.."},  // one whose paces have always varied
      {{unknown(1 + std::log(15.0)), unknown(1), unknown(1)}, "w.."},
      {{unknown(1 + std::log(17.0)), unknown(1), unknown(1)}, "x.."},
      {{unknown(9), unknown(1)}, ".."},
      {{known(1), unknown(9), known(1)}, ".x."},  // a newcomer
      {{std::nullopt, known(9), known(1)}, ".x."},
      {{std::nullopt, known(9)}, ".."},
      {{DeltaFigures{}, known(1 + above), known(1)}, ".x."},  // a delta of zeros
  };
  for (const auto& row : table) CHECK(verdicts(row.figures) == row.verdicts);
}

TEST_CASE("a rule may warn only or look at nothing, and a site without work is not looked at") {
  auto broken = known(20);
  broken.largest = 1e30;
  broken.bound = 1;
  const std::vector<std::optional<DeltaFigures>> figures{broken, known(9), known(1), known(1)};
  CHECK(verdicts(figures) == "xx..");
  CHECK(verdicts(figures, OutlierRule::kWarn) == "ww..");
  CHECK(verdicts(figures, OutlierRule::kOff) == "....");
  const std::vector<Work> none(4);
  for (const auto& verdict : judge(OutlierRule::kLeaveOut, none, figures)) {
    CHECK(verdict.reason.empty());
  }
}

TEST_CASE("the verdict on a member does not depend on the order of the members") {
  std::vector<std::optional<DeltaFigures>> figures{known(9), known(1.2), known(1 + std::log(4)),
                                                   unknown(6), std::nullopt};
  const auto straight = verdicts(figures);
  std::ranges::reverse(figures);
  auto back = verdicts(figures);
  std::ranges::reverse(back);
  CHECK(straight == back);
}

// Sound sites: their norms vary by 5 % or by 15 %, and now and then one is tripled. A faulty one is
// out by a factor of 30.
TEST_CASE("sound sites are not left out, and a fault is found") {
  std::mt19937_64 random(7);
  for (const int sites : {2, 3, 4, 5, 8}) {
    for (const double deviation : {0.05, 0.15}) {
      std::normal_distribution<double> vary(0, deviation);
      std::bernoulli_distribution is_tripled(0.05);
      const auto pace = [&] { return vary(random) + (is_tripled(random) ? std::log(3.0) : 0.0); };
      int64_t sound_out = 0, faults_found = 0;
      constexpr int kTrials = 4000;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<std::optional<DeltaFigures>> figures;
        for (int site = 0; site < sites; ++site) {
          std::vector<double> past(8);
          std::ranges::generate(past, pace);
          std::ranges::sort(past);
          const double usual = (past[3] + past[4]) / 2;
          for (auto& value : past) value = std::abs(value - usual);
          std::ranges::sort(past);
          figures.push_back(DeltaFigures{.norm = kRates * std::exp(pace()),
                                         .usual_pace = usual,
                                         .pace_spread = (past[3] + past[4]) / 2,
                                         .known_paces = 8});
        }
        sound_out += std::ranges::count(verdicts(figures), 'x');
        figures.back()->norm *= 30;
        faults_found += verdicts(figures).back() == 'x' ? 1 : 0;
      }
      CHECK(sound_out == 0);
      // Of two sites the other one may have had an odd round.
      CHECK(faults_found > (sites == 2 ? 0.85 : 0.98) * kTrials);
    }
  }
}

}  // namespace
}  // namespace farstep::outer_optimizer
