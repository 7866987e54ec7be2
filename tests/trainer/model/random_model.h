// Fresh random weights and tokens for the tests of models, and how far gradients are from fp64's.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include "tests/support/catch.h"
#include "tests/trainer/model/fp64_oracle.h"

namespace farstep {

struct ModelShape {
  const char* name;
  LlamaConfig config;
  int64_t sequences, length;
};

inline int64_t fresh_seed() {
  static std::mt19937 seeds = [] {
    const auto seed = std::random_device{}();
    std::cout << "seed " << seed << "\n";
    return std::mt19937(seed);
  }();
  return seeds();
}

// Matrices as spread as those of a real model at its start; the same on every device.
inline void randomise(Parameters& parameters, int64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& spec : parameters.layout()) {
    auto values = parameters.values().narrow(0, spec.offset, spec.size());
    const double deviation =
        spec.decays ? 0.3 / std::sqrt(static_cast<double>(spec.shape.back())) : 0.3;
    values.copy_(at::empty({spec.size()}).normal_(spec.decays ? 0 : 1, deviation, generator));
  }
}

inline at::Tensor random_tokens(const LlamaConfig& config, int64_t sequences, int64_t length) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(fresh_seed());
  return at::randint(0, config.vocabulary, {sequences, length + 1}, generator, at::kLong);
}

inline double norm_of(const at::Tensor& x) {
  return x.to(at::kDouble).norm().item<double>();
}

// Loss, the whole gradient, and every parameter's; that of a parameter alone may be twice as far
// off in bf16, where a few roundings do not average out. A parameter's error is taken relative to
// its gradient's norm, or to 1e-2 of the whole gradient's where that is larger: one token alone has
// no gradient in queries and keys.
inline void compare(const Parameters& parameters, double loss, const at::Tensor& gradients,
                    const OracleResult& wanted, double tolerance) {
  CHECK(loss == Approx(wanted.loss).epsilon(tolerance));
  const double whole = norm_of(wanted.gradients);
  CHECK(norm_of(gradients - wanted.gradients) < tolerance * whole);
  for (const auto& spec : parameters.layout()) {
    INFO(spec.name);
    const auto part = wanted.gradients.narrow(0, spec.offset, spec.size());
    const auto error = norm_of(gradients.narrow(0, spec.offset, spec.size()) - part);
    CHECK(error <= (tolerance < 1e-3 ? 1 : 2) * tolerance * std::max(norm_of(part), 1e-2 * whole));
  }
}

}  // namespace farstep
