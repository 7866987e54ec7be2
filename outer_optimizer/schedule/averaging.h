// The coefficient of each site's delta in the mean (docs/averaging.md).
//
// Pure functions; thread-safe. Every site computes the coefficients from the same list in the order
// of the view, and so gets the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "outer_optimizer/schedule/work.h"

namespace farstep::outer_optimizer {

enum class AveragingRule { kUniform, kTokens, kBatch, kFedNova, kTokensSquaredPerStep };
inline std::span<const std::string_view> enum_names(AveragingRule) {
  static constexpr std::array<std::string_view, 5> kNames{"uniform", "tokens", "batch", "fednova",
                                                          "tokens_squared_per_step"};
  return kNames;
}

// Returns the coefficients c_i of mean = sum_i c_i delta_i, in the order of `works`:
//   uniform                  1 / N
//   tokens                   T_i / sum T
//   batch                    B_i / sum B
//   tokens_squared_per_step  (T_i^2 / H_i) / sum (T^2 / H)
//   fednova                  p_i tau / H_i with p_i = T_i / sum T and tau = sum (p H): deltas for a
//                            step, weighted by tokens, times the effective number of steps, tau_eff
//                            of Wang et al. 2020, section 4. It is not the plain mean of H: only
//                            so does the mean delta move sum (c H) = sum (p H) steps, as by the
//                            rule tokens (FedAvg). Equals batch times tau sum B / sum (B H).
// They sum to 1 (fednova's only if all H are equal). A site without steps gets 0 and is in no sum;
// if no site has steps, all get 0. uniform and batch do not count steps: by these a site with
// missing steps has the share of its weight that it has done of its planned steps.
std::vector<double> averaging_coefficients(AveragingRule rule, std::span<const Work> works);

}  // namespace farstep::outer_optimizer
