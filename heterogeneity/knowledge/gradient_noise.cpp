#include "heterogeneity/knowledge/gradient_noise.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

// The weight of the rounds before a round. Four rounds' worth of steps are averaged: estimates of
// single steps scatter by more than their mean, and in four rounds the noise scale moves little.
constexpr double kKept = 0.75;

}  // namespace

GradientNoise& GradientNoise::operator+=(const GradientNoise& other) {
  examples += other.examples;
  squared_norm += other.squared_norm;
  variance += other.variance;
  return *this;
}

std::optional<double> GradientNoise::mean_squared_norm() const {
  if (examples <= 0) return std::nullopt;
  return squared_norm / examples;
}

std::optional<double> GradientNoise::mean_variance() const {
  if (examples <= 0) return std::nullopt;
  return variance / examples;
}

std::optional<double> GradientNoise::scale() const {
  if (examples <= 0 || squared_norm <= 0) return std::nullopt;
  const double scale = std::max(0.0, variance) / squared_norm;
  if (!std::isfinite(scale)) return std::nullopt;  // a gradient of nearly 0
  return scale;
}

// The parts are weighted by their sizes b_i, so their mean has the expectation
// |G|^2 + tr(Sigma) n / (b_1 + ... + b_n): that of one part of their mean size.
std::optional<GradientNoise> noise_of_step(std::span<const MeanGradient> parts,
                                           const MeanGradient& whole, double examples) {
  double sum = 0, squares = 0;
  for (const auto& part : parts) {
    FARSTEP_CHECK(part.examples > 0, "a part of {} examples", part.examples);
    sum += part.examples;
    squares += part.examples * part.squared_norm;
  }
  if (parts.empty()) return std::nullopt;
  const double size = sum / static_cast<double>(parts.size());
  if (size >= whole.examples) return std::nullopt;
  const double part = squares / sum;
  const double squared_norm =
      (whole.examples * whole.squared_norm - size * part) / (whole.examples - size);
  const double variance = (part - whole.squared_norm) / (1 / size - 1 / whole.examples);
  return GradientNoise{.examples = examples,
                       .squared_norm = examples * squared_norm,
                       .variance = examples * variance};
}

GradientNoise noise_after(const GradientNoise& before, const GradientNoise& round) {
  GradientNoise after{.examples = kKept * before.examples,
                      .squared_norm = kKept * before.squared_norm,
                      .variance = kKept * before.variance};
  return after += round;
}

}  // namespace farstep::heterogeneity
