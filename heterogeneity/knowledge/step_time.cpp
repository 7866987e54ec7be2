// A step costs an update, plus something for each pass, plus something for each sequence. The line
// is the least-squares fit of these three costs. At most three unknowns and seven sets of them:
// trying all sets is simpler than a solver with constraints.
#include "heterogeneity/knowledge/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace farstep::heterogeneity {

namespace {

enum Cost : unsigned { kStep, kMicroBatch, kSequence, kNumCosts };
using Costs = std::array<double, kNumCosts>;

// The coefficients of a measurement's costs, divided by its seconds: the costs times these sum to
// 1. Divided by the seconds, errors are relative: otherwise the longest step alone would determine
// the fit.
using Row = std::array<double, kNumCosts>;

int64_t micro_batches(int64_t batch, int64_t micro_batch) {
  return (batch + micro_batch - 1) / micro_batch;
}

int64_t batch_of(const StepTime& measured) {
  return measured.batch.value_or(measured.micro_batch);
}

// A column of the least-squares problem that elimination shortens below this share depends on the
// others. Squares of lengths are compared, so the share of a length is 1e-5. That is far above the
// rounding of doubles and far below what noisy times can separate.
constexpr double kDependent = 1e-10;

constexpr unsigned bit(Cost cost) {
  return 1U << cost;
}

// Sets of costs that a step may consist of. Among sets that explain the measurements equally well
// the first one wins, so a cost of a sequence takes precedence over one of a micro-batch.
constexpr std::array<unsigned, 7> kCostSets{
    bit(kSequence),
    bit(kStep) | bit(kSequence),
    bit(kMicroBatch) | bit(kSequence),
    bit(kStep) | bit(kMicroBatch) | bit(kSequence),
    bit(kStep),
    bit(kMicroBatch),
    bit(kStep) | bit(kMicroBatch),
};

// The normal equations with columns scaled to length 1, and the columns' true lengths.
struct NormalEquations {
  std::array<Costs, kNumCosts> products{};
  Costs right_side{};
  Costs lengths{};
};

// Columns are scaled to length 1, so that kDependent means the same for all costs.
NormalEquations normal_equations(std::span<const Row> rows) {
  NormalEquations normal;
  for (unsigned i = 0; i < kNumCosts; ++i) {
    for (const auto& row : rows) normal.lengths[i] += row[i] * row[i];
    normal.lengths[i] = std::sqrt(normal.lengths[i]);
  }
  for (unsigned i = 0; i < kNumCosts; ++i) {
    for (const auto& row : rows) {
      const double own = row[i] / normal.lengths[i];
      for (unsigned j = 0; j < kNumCosts; ++j) {
        normal.products[i][j] += own * row[j] / normal.lengths[j];
      }
      normal.right_side[i] += own;
    }
  }
  return normal;
}

// Returns the least-squares costs of the set, with 0 for all others; nullopt if the measurements
// cannot separate them. Gaussian elimination on the rows and columns of the set.
std::optional<Costs> solve(NormalEquations normal, unsigned set) {
  for (unsigned pivot = 0; pivot < kNumCosts; ++pivot) {
    if (!(set & (1U << pivot))) continue;
    if (normal.products[pivot][pivot] < kDependent) return std::nullopt;
    for (unsigned i = 0; i < kNumCosts; ++i) {
      if (i == pivot || !(set & (1U << i))) continue;
      const double factor = normal.products[i][pivot] / normal.products[pivot][pivot];
      for (unsigned j = 0; j < kNumCosts; ++j) {
        normal.products[i][j] -= factor * normal.products[pivot][j];
      }
      normal.right_side[i] -= factor * normal.right_side[pivot];
    }
  }
  Costs costs{};
  for (unsigned i = 0; i < kNumCosts; ++i) {
    if (!(set & (1U << i))) continue;
    costs[i] = normal.right_side[i] / normal.products[i][i] / normal.lengths[i];
  }
  return costs;
}

double squared_error(std::span<const Row> rows, const Costs& costs) {
  double sum = 0;
  for (const auto& row : rows) {
    double error = -1;
    for (unsigned cost = 0; cost < kNumCosts; ++cost) error += row[cost] * costs[cost];
    sum += error * error;
  }
  return sum;
}

// Fits the line to `measured`, which is not empty.
StepTimeFit fit_line(std::span<const StepTime> measured) {
  constexpr double kBetter = 1e-12;  // rounding of the squared errors
  std::vector<Row> rows;
  const int64_t first_batch = batch_of(measured.front());
  bool batches_differ = false;
  bool accumulated = false;
  for (const auto& step : measured) {
    const auto batch = batch_of(step);
    const auto passes = micro_batches(batch, step.micro_batch);
    batches_differ |= batch != first_batch;
    accumulated |= passes > 1;
    rows.push_back({1 / step.seconds, static_cast<double>(passes) / step.seconds,
                    static_cast<double>(batch) / step.seconds});
  }
  // The best solution without negative costs is the unconstrained one of its own set of costs; with
  // seven sets, all are tried.
  const auto normal = normal_equations(rows);
  std::optional<Costs> best;
  double best_error = 0;
  for (const unsigned set : kCostSets) {
    // One batch cannot tell a fixed cost from a growing one. Single passes cannot tell the cost of
    // a pass from that of a step.
    if ((set & bit(kStep)) && !batches_differ) continue;
    if ((set & bit(kMicroBatch)) && !accumulated) continue;
    const auto costs = solve(normal, set);
    if (!costs || *std::min_element(costs->begin(), costs->end()) < 0) continue;
    const double error = squared_error(rows, *costs);
    if (best && error >= best_error - kBetter) continue;
    best = costs;
    best_error = error;
  }
  StepTimeFit fit;
  fit.step_seconds = (*best)[kStep];
  fit.micro_batch_seconds = (*best)[kMicroBatch];
  fit.sequence_seconds = (*best)[kSequence];
  fit.least_batch = batches_differ ? 1 : first_batch;
  for (const auto& step : measured) {
    const double error =
        std::abs(fit.line_seconds(batch_of(step), step.micro_batch) - step.seconds) / step.seconds;
    fit.relative_error = std::max(fit.relative_error, error);
  }
  return fit;
}

// Sums over the measurements with one pass size. Each measurement is the equation update * once +
// pass * often = 1, divided by its seconds.
struct PassSums {
  double once = 0, often = 0, once_once = 0, once_often = 0, often_often = 0;

  void add(double passes, double seconds) {
    once += 1 / seconds;
    often += passes / seconds;
    once_once += 1 / (seconds * seconds);
    once_often += passes / (seconds * seconds);
    often_often += passes * passes / (seconds * seconds);
  }
};

using SumsBySize = std::map<int64_t, PassSums>;

// Returns the least-squares cost of an update, limited so that no pass gets a negative cost. If no
// pass size was measured with several numbers of passes, returns the line's cost. Each pass size
// has an unknown cost of its own. Eliminating these leaves one equation for the update. For
// example, a step of four passes and one of a single pass differ by three passes alone.
double update_seconds(const SumsBySize& sums, double line_step_seconds) {
  double squares = 0, product = 0, all = 0;
  double most = std::numeric_limits<double>::infinity();
  for (const auto& [size, of_size] : sums) {
    all += of_size.once_once;
    squares += of_size.once_once - of_size.once_often * of_size.once_often / of_size.often_often;
    product += of_size.once - of_size.once_often * of_size.often / of_size.often_often;
    most = std::min(most, of_size.often / of_size.once_often);
  }
  return std::clamp(squares > kDependent * all ? product / squares : line_step_seconds, 0.0, most);
}

// Fits the table to the same measurements as the line.
void add_table(std::span<const StepTime> measured, StepTimeFit& fit) {
  SumsBySize sums;
  for (const auto& step : measured) {
    // A batch that its micro-batch does not divide counts as a fraction of a pass: its small last
    // pass is not a size of its own.
    const int64_t size = std::min(step.micro_batch, batch_of(step));
    sums[size].add(static_cast<double>(batch_of(step)) / static_cast<double>(size), step.seconds);
  }
  fit.update_seconds = update_seconds(sums, fit.step_seconds);
  fit.passes = {{.sequences = 0, .seconds = 0}};
  for (const auto& [size, of_size] : sums) {
    const double seconds =
        (of_size.often - fit.update_seconds * of_size.once_often) / of_size.often_often;
    fit.passes.push_back({size, std::max(seconds, fit.passes.back().seconds)});
  }
  // A pass of nothing anchors sizes below the smallest measured one. It must not cost more than
  // that one.
  fit.passes.front().seconds = std::min(fit.micro_batch_seconds, fit.passes[1].seconds);
}

// Linear interpolation between measured sizes; by the line's slope beyond the last.
double pass_seconds(const StepTimeFit& fit, int64_t sequences) {
  const auto above = std::ranges::lower_bound(fit.passes, sequences, {}, &PassTime::sequences);
  const auto below = std::prev(above);
  const auto more = static_cast<double>(sequences - below->sequences);
  if (above == fit.passes.end()) return below->seconds + fit.sequence_seconds * more;
  return std::lerp(below->seconds, above->seconds,
                   more / static_cast<double>(above->sequences - below->sequences));
}

}  // namespace

double StepTimeFit::seconds(int64_t batch, int64_t micro_batch) const {
  const int64_t sequences = std::max(batch, least_batch);
  const int64_t rest = sequences % micro_batch;
  double sum = update_seconds;
  if (sequences >= micro_batch) {
    sum += static_cast<double>(sequences / micro_batch) * pass_seconds(*this, micro_batch);
  }
  if (rest > 0) sum += pass_seconds(*this, rest);
  return sum;
}

double StepTimeFit::line_seconds(int64_t batch, int64_t micro_batch) const {
  return step_seconds +
         micro_batch_seconds * static_cast<double>(micro_batches(batch, micro_batch)) +
         sequence_seconds * static_cast<double>(std::max(batch, least_batch));
}

std::optional<StepTimeFit> fit_step_time(std::span<const StepTime> measured) {
  if (measured.empty()) return std::nullopt;
  auto fit = fit_line(measured);
  add_table(measured, fit);
  return fit;
}

}  // namespace farstep::heterogeneity
