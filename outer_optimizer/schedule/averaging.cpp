#include "outer_optimizer/schedule/averaging.h"

#include <numeric>

#include "trainer/base/error.h"

namespace farstep {

namespace {

double raw_weight(AveragingRule rule, const Work& work) {
  const auto steps = static_cast<double>(work.steps);
  const auto tokens = static_cast<double>(work.tokens);
  switch (rule) {
    case AveragingRule::kUniform:
      return 1;
    case AveragingRule::kTokens:
    case AveragingRule::kFedNova:
      return tokens;
    case AveragingRule::kBatch:
      return static_cast<double>(work.batch);
    case AveragingRule::kTokensSquaredPerStep:
      return tokens * tokens / steps;
  }
  throw InternalError("unknown averaging rule");
}

}  // namespace

std::vector<double> averaging_coefficients(AveragingRule rule, std::span<const Work> works) {
  std::vector<double> coefficients;
  double num_workers = 0;
  double num_steps = 0;
  for (const auto& work : works) {
    coefficients.push_back(work.steps > 0 ? raw_weight(rule, work) : 0);
    if (work.steps > 0) {
      num_workers += 1;
      num_steps += static_cast<double>(work.steps);
    }
  }
  const double sum = std::accumulate(coefficients.begin(), coefficients.end(), 0.0);
  FARSTEP_CHECK(sum > 0, "no site brings any work to the sync");
  for (std::size_t i = 0; i < works.size(); ++i) {
    coefficients[i] /= sum;
    if (rule == AveragingRule::kFedNova && works[i].steps > 0) {
      coefficients[i] *= num_steps / num_workers / static_cast<double>(works[i].steps);
    }
  }
  return coefficients;
}

}  // namespace farstep
