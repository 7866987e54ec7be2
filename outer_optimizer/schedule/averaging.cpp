#include "outer_optimizer/schedule/averaging.h"

#include <numeric>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

// Returns the part of its planned steps that a site did. With its full weight a delta of a few
// steps would shorten the mean, and so the steps of all others.
double share_done(const Work& work) {
  const auto steps = static_cast<double>(work.steps);
  return steps / (steps + static_cast<double>(work.missing_steps));
}

// Returns a site's weight before the division by the sum. A raw delta contains its steps already,
// so `batch` counts the batch alone. Under plain SGD that wastes no sequence (docs/averaging.md).
double raw_weight(AveragingRule rule, const Work& work) {
  const auto steps = static_cast<double>(work.steps);
  const auto tokens = static_cast<double>(work.tokens);
  switch (rule) {
    case AveragingRule::kUniform:
      return share_done(work);
    case AveragingRule::kTokens:
    case AveragingRule::kFedNova:
      return tokens;
    case AveragingRule::kBatch:
      return share_done(work) * static_cast<double>(work.batch);
    case AveragingRule::kTokensSquaredPerStep:
      return tokens * tokens / steps;
  }
  throw InternalError("unknown averaging rule");
}

}  // namespace

// The weights divided by their sum. fednova also divides by the site's steps and multiplies by the
// effective number of steps (Wang et al. 2020).
std::vector<double> averaging_coefficients(AveragingRule rule, std::span<const Work> works) {
  std::vector<double> coefficients;
  for (const auto& work : works) {
    // A site without steps has delta 0, and its rule might divide by 0.
    coefficients.push_back(work.steps > 0 ? raw_weight(rule, work) : 0);
  }
  const double sum = std::accumulate(coefficients.begin(), coefficients.end(), 0.0);
  if (sum == 0) return coefficients;  // all that worked are lost, and a newcomer is left
  double effective_steps = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    coefficients[i] /= sum;
    effective_steps += coefficients[i] * static_cast<double>(works[i].steps);
  }
  if (rule != AveragingRule::kFedNova) return coefficients;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i].steps > 0)
      coefficients[i] *= effective_steps / static_cast<double>(works[i].steps);
  }
  return coefficients;
}

}  // namespace farstep::outer_optimizer
