#include "heterogeneity/plan/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace farstep {

namespace {

enum Cost : unsigned { kStep, kMicroBatch, kSequence, kNumCosts };
using Costs = std::array<double, kNumCosts>;

// A measurement divided by its seconds: what each cost counts in it, so that they add up to 1.
using Row = std::array<double, kNumCosts>;

int64_t micro_batches(int64_t batch, int64_t micro_batch) {
  return (batch + micro_batch - 1) / micro_batch;
}

int64_t batch_of(const StepTime& measured) {
  return measured.batch.value_or(measured.micro_batch);
}

constexpr unsigned bit(Cost cost) {
  return 1U << cost;
}

// Sets of costs that may be what a step consists of: among those that explain the measurements
// equally well the first one counts, so that a cost a sequence goes before one a micro-batch.
constexpr std::array<unsigned, 7> kCostSets{
    bit(kSequence),
    bit(kStep) | bit(kSequence),
    bit(kMicroBatch) | bit(kSequence),
    bit(kStep) | bit(kMicroBatch) | bit(kSequence),
    bit(kStep),
    bit(kMicroBatch),
    bit(kStep) | bit(kMicroBatch),
};

// Normal equations of the least squares with columns of length 1, and the columns' true lengths.
struct NormalEquations {
  std::array<Costs, kNumCosts> products{};
  Costs right_side{};
  Costs lengths{};
};

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

// The least-squares costs of the set, all others 0; nothing if the measurements cannot tell them
// apart. Gauss's elimination, row by row of those that are in the set.
std::optional<Costs> solve(NormalEquations normal, unsigned set) {
  constexpr double kDependent = 1e-10;
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

}  // namespace

double StepTimeFit::seconds(int64_t batch, int64_t micro_batch) const {
  return step_seconds +
         micro_batch_seconds * static_cast<double>(micro_batches(batch, micro_batch)) +
         sequence_seconds * static_cast<double>(std::max(batch, least_batch));
}

std::optional<StepTimeFit> fit_step_time(std::span<const StepTime> measured) {
  constexpr double kBetter = 1e-12;
  if (measured.empty()) return std::nullopt;
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
  // The best solution without a cost below zero is the least-squares one of its own set of costs.
  const auto normal = normal_equations(rows);
  std::optional<Costs> best;
  double best_error = 0;
  for (const unsigned set : kCostSets) {
    if ((set & bit(kStep)) && !batches_differ) continue;
    if ((set & bit(kMicroBatch)) && !accumulated) continue;
    const auto costs = solve(normal, set);
    if (!costs || *std::min_element(costs->begin(), costs->end()) < 0) continue;
    const double error = squared_error(rows, *costs);
    if (best && error >= best_error - kBetter) continue;
    best = costs;
    best_error = error;
  }
  StepTimeFit fit{.step_seconds = (*best)[kStep],
                  .micro_batch_seconds = (*best)[kMicroBatch],
                  .sequence_seconds = (*best)[kSequence],
                  .least_batch = batches_differ ? 1 : first_batch};
  for (const auto& step : measured) {
    const double error =
        std::abs(fit.seconds(batch_of(step), step.micro_batch) - step.seconds) / step.seconds;
    fit.relative_error = std::max(fit.relative_error, error);
  }
  return fit;
}

}  // namespace farstep
