#include "heterogeneity/plan/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
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

// The least-squares costs of the set, all others 0; nothing if the measurements cannot tell them
// apart. Gauss on the normal equations with columns of length 1.
std::optional<Costs> solve(const std::vector<Row>& rows, unsigned costs) {
  constexpr double kDependent = 1e-10;
  std::array<Cost, kNumCosts> columns{};
  std::size_t n = 0;
  for (unsigned cost = 0; cost < kNumCosts; ++cost) {
    if (costs & (1U << cost)) columns[n++] = static_cast<Cost>(cost);
  }
  std::array<double, kNumCosts> length{};
  std::array<std::array<double, kNumCosts + 1>, kNumCosts> normal{};
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto& row : rows) length[i] += row[columns[i]] * row[columns[i]];
    length[i] = std::sqrt(length[i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto& row : rows) {
      const double own = row[columns[i]] / length[i];
      for (std::size_t j = 0; j < n; ++j) normal[i][j] += own * row[columns[j]] / length[j];
      normal[i][n] += own;
    }
  }
  for (std::size_t pivot = 0; pivot < n; ++pivot) {
    if (normal[pivot][pivot] < kDependent) return std::nullopt;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == pivot) continue;
      const double factor = normal[i][pivot] / normal[pivot][pivot];
      for (std::size_t j = pivot; j <= n; ++j) normal[i][j] -= factor * normal[pivot][j];
    }
  }
  Costs solution{};
  for (std::size_t i = 0; i < n; ++i) {
    solution[columns[i]] = normal[i][n] / normal[i][i] / length[i];
  }
  return solution;
}

double squared_error(const std::vector<Row>& rows, const Costs& costs) {
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
  std::optional<Costs> best;
  double best_error = 0;
  for (const unsigned set : kCostSets) {
    if ((set & bit(kStep)) && !batches_differ) continue;
    if ((set & bit(kMicroBatch)) && !accumulated) continue;
    const auto costs = solve(rows, set);
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
