// Norms of sites with equal data differ by some per cent, and a fault is out by powers of ten. So
// the factors are wide. Narrow ones would leave out sound deltas, above all of few sites.
#include "outer_optimizer/schedule/outliers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace farstep::outer_optimizer {

namespace {

// Rounding comes on top of the bound, and a value may be exactly at it.
constexpr double kBoundSlack = 2;
constexpr int64_t kLeastKnown = 4;
// A normal deviation is this many median distances.
constexpr double kDeviation = 1.4826;
const double kLeftOutAlone = std::log(8.0), kLeftOutAmongOthers = std::log(16.0),
             kWarned = std::log(3.0), kSteady = std::log(2.0);

struct Member {
  double pace = 0;
  std::optional<double> growth;  // beyond its usual pace; nullopt if too few are known
  double spread = 0;
};

// By how much a pace exceeds what was to be expected, as a logarithm, and from where on the delta
// is left out.
struct Excess {
  double value, limit;
  std::string_view expected;
};

// Returns nullopt if nothing can be said.
std::optional<Excess> excess_of(std::size_t place, std::span<const std::optional<Member>> members) {
  const auto& own = *members[place];
  std::vector<double> paces, growths;  // the others'
  for (std::size_t other = 0; other < members.size(); ++other) {
    if (other == place || !members[other]) continue;
    paces.push_back(members[other]->pace);
    if (members[other]->growth) growths.push_back(*members[other]->growth);
  }
  if (own.growth && !growths.empty()) {
    const double common = median(growths);
    if (growths.size() == 1 && std::abs(common) >= kSteady) return std::nullopt;
    return Excess{*own.growth - common, std::max(kLeftOutAlone, 6 * kDeviation * own.spread),
                  "usual at this site"};
  }
  if (paces.size() < 2) return std::nullopt;
  return Excess{own.pace - median(paces), kLeftOutAmongOthers, "usual at the other sites"};
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> pace_of(double norm, const Work& work) {
  if (norm == 0 || work.rates.value_or(0) == 0) return std::nullopt;
  return std::log(norm / *work.rates);
}

std::vector<Verdict> judge(OutlierRule rule, std::span<const Work> works,
                           std::span<const std::optional<DeltaFigures>> figures) {
  std::vector<Verdict> verdicts(figures.size());
  if (rule == OutlierRule::kOff) return verdicts;
  std::vector<std::optional<Member>> members(figures.size());
  for (std::size_t place = 0; place < figures.size(); ++place) {
    const auto& delta = figures[place];
    if (!delta || works[place].steps == 0) continue;
    // Such a delta says nothing of what is usual.
    if (delta->bound > 0 && delta->largest > kBoundSlack * delta->bound) {
      verdicts[place] = {.is_left_out = true,
                         .reason = fmt::format("has a value of {:.3g}, and its steps can make at "
                                               "most {:.3g}",
                                               delta->largest, delta->bound)};
      continue;
    }
    const auto pace = pace_of(delta->norm, works[place]);
    if (!pace) continue;
    members[place] = Member{.pace = *pace, .growth = {}, .spread = delta->pace_spread};
    if (delta->known_paces >= kLeastKnown) members[place]->growth = *pace - delta->usual_pace;
  }
  for (std::size_t place = 0; place < figures.size(); ++place) {
    if (!members[place]) continue;
    const auto excess = excess_of(place, members);
    if (!excess || excess->value <= kWarned) continue;
    verdicts[place] = {.is_left_out = excess->value > excess->limit,
                       .reason = fmt::format("is {:.3g} times as long as {}",
                                             std::exp(excess->value), excess->expected)};
  }
  if (rule == OutlierRule::kWarn) {
    for (auto& verdict : verdicts) verdict.is_left_out = false;
  }
  return verdicts;
}

}  // namespace farstep::outer_optimizer
