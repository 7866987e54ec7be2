// The gradient noise scale: the batch size beyond which a larger batch hardly makes a better step.
//
// The gradient of one example has the mean G and the covariance Sigma. The mean gradient of b
// examples then has the expected squared norm |G|^2 + tr(Sigma) / b. So the squared norms at two
// sizes, of a part of b examples and of a whole of B, tell both unknowns without bias:
//
//   |G|^2     = (B |G_B|^2 - b |G_b|^2) / (B - b)
//   tr(Sigma) = (|G_b|^2 - |G_B|^2) / (1/b - 1/B)
//
// The noise scale is tr(Sigma) / |G|^2, in examples. The ratio of two estimates is biased, so each
// is averaged on its own, over steps, sites and rounds, and divided last. One step's estimates may
// be negative. Source: McCandlish et al. 2018, appendix A.1.
//
// A step has several parts if a site has several devices: the weighted mean of their squared norms
// counts as one part of their mean size.
//
// The figures' way: share_gradients() takes a device's norm, InnerStep the step's estimates,
// SiteTrainer their sums, RoundTiming brings them to all sites, and Planner averages over rounds.
//
// Values and pure functions; thread-safe.
#pragma once

#include <optional>
#include <span>

#include "trainer/config/fields.h"

namespace farstep::heterogeneity {

// The mean gradient of some examples.
struct MeanGradient {
  double examples = 0;
  double squared_norm = 0;
};

// Sums of estimates, each weighted by the examples of its step's batch.
struct GradientNoise {
  // The largest magnitude of a figure that travels. Larger ones are a mistake, and sums of
  // thousands of such figures stay finite.
  static constexpr double kMost = 1e200;

  double examples = 0;      // the sum of the weights; 0: nothing was measured
  double squared_norm = 0;  // of |G|^2
  double variance = 0;      // of tr(Sigma)

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("examples", examples, "weight of the estimates, in examples; 0: nothing was measured",
          in_range(0, kMost));
    visit("squared_norm", squared_norm, "squared norm of the gradient, times the weight",
          in_range(-kMost, kMost));
    visit("variance", variance, "variance of one example's gradient, times the weight",
          in_range(-kMost, kMost));
  }

  GradientNoise& operator+=(const GradientNoise& other);
  bool operator==(const GradientNoise&) const = default;

  // The averages; nullopt if nothing was measured.
  std::optional<double> mean_squared_norm() const;
  std::optional<double> mean_variance() const;
  // The noise scale, at least 0; nullopt if the gradient was not seen above its noise.
  std::optional<double> scale() const;
};

// Returns the estimates of one step, of which `parts` (disjoint, not without examples) and `whole`
// are known, with the weight `examples`; nullopt if the parts are as large as the whole.
std::optional<GradientNoise> noise_of_step(std::span<const MeanGradient> parts,
                                           const MeanGradient& whole, double examples);

// Returns the estimates over the rounds so far, after one more. Older rounds count less, because
// the noise scale grows during a run.
GradientNoise noise_after(const GradientNoise& before, const GradientNoise& round);

}  // namespace farstep::heterogeneity
