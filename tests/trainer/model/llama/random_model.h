// Fresh random weights and tokens for the tests of models, and how far gradients are from fp64's.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/fp64_oracle.h"

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

// The values that the products of a bf16 model see: what is measured then is its arithmetic.
inline at::Tensor rounded_matrices(const Parameters& parameters) {
  auto values = parameters.values().cpu().clone();
  for (const auto& spec : parameters.layout()) {
    if (!spec.decays || spec.name == "model.embed_tokens.weight") continue;
    auto matrix = values.narrow(0, spec.offset, spec.size());
    matrix.copy_(matrix.to(at::kBFloat16));
  }
  return values;
}

// How far loss and gradients are from fp64's, over one draw of weights and tokens or several. A
// parameter's error is taken relative to its gradient's norm, or to 5e-2 of the whole gradient's
// where that is larger: one token alone has no gradient in queries and keys.
class GradientErrors {
 public:
  void add(const Parameters& parameters, double loss, const at::Tensor& gradients,
           const OracleResult& wanted) {
    const double whole = norm_of(wanted.gradients);
    count("loss", loss - wanted.loss, wanted.loss);
    count("all gradients", norm_of(gradients - wanted.gradients), whole);
    for (const auto& spec : parameters.layout()) {
      const auto part = wanted.gradients.narrow(0, spec.offset, spec.size());
      count(spec.name, norm_of(gradients.narrow(0, spec.offset, spec.size()) - part),
            std::max(norm_of(part), 5e-2 * whole));
    }
  }

  // That the median of each is below `tolerance`.
  void check(double tolerance) const {
    for (auto [name, errors] : errors_) {
      INFO(name);
      std::ranges::sort(errors);
      CHECK(errors[errors.size() / 2] < tolerance);
    }
  }

 private:
  void count(const std::string& name, double error, double size) {
    errors_[name].push_back(std::abs(error / size));
  }

  std::map<std::string, std::vector<double>> errors_;
};

// How many draws of a shape tell its error: where few values are rounded to bf16, now and then one
// of them decides a gradient.
inline int draws_of(const ModelShape& shape) {
  return shape.sequences * shape.length < 100 ? 33 : 3;
}

}  // namespace farstep
