// Muon (Jordan et al. 2024): the update of a matrix is its momentum with all singular values near
// 1, found by a Newton-Schulz iteration of matrix products. Vectors, embedding and head go to
// AdamW.
#include "trainer/inner/muon/muon.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "trainer/inner/muon/newton_schulz.h"

namespace farstep {

namespace {

// The usual root mean square of AdamW's updates.
constexpr double kScale = 0.2;

std::vector<ParameterSpec> groups_of(std::span<const ParameterSpec> groups, bool are_hidden) {
  std::vector<ParameterSpec> found;
  std::ranges::copy_if(groups, std::back_inserter(found),
                       [&](const auto& group) { return group.is_hidden_matrix == are_hidden; });
  return found;
}

}  // namespace

Muon::Muon(const MuonConfig& config, const AdamWConfig& adamw, Parameters& parameters,
           std::span<const ParameterSpec> groups)
    : HostOptimizer(parameters),
      config_(config),
      matrices_(groups_of(groups, true)),
      momentum_(zeros_for(matrices_, parameters.values().device())),
      host_momentum_(momentum_),
      rest_(adamw, parameters, groups_of(groups, false)) {}

NamedBuffers Muon::pull_state() {
  auto buffers = rest_.pull_state();
  buffers.push_back(f32_buffer("muon_momentum", host_momentum_.pull()));
  return buffers;
}

void Muon::push_state() {
  rest_.push_state();
  host_momentum_.push();
}

void Muon::change_values(double learning_rate, double gradient_factor) {
  int64_t offset = 0;
  for (const auto& matrix : matrices_) {
    update_matrix(matrix, offset, learning_rate, gradient_factor);
    offset += matrix.size();
  }
  // Last: on a GPU it may scale all gradients in place.
  rest_.update(learning_rate, gradient_factor);
}

void Muon::update_matrix(const ParameterSpec& matrix, int64_t offset_in_state, double learning_rate,
                         double gradient_factor) {
  const auto as_matrix = [&](const at::Tensor& flat, int64_t offset) {
    return flat.narrow(0, offset, matrix.size()).view({matrix.shape.front(), -1});
  };
  auto gradient = as_matrix(parameters().gradients(), matrix.offset);
  if (gradient_factor != 1) gradient = gradient * gradient_factor;
  auto mean = as_matrix(momentum_, offset_in_state);
  mean.lerp_(gradient, 1 - config_.momentum);
  const auto direction = config_.nesterov ? gradient.lerp(mean, config_.momentum) : mean;
  const auto update = orthogonalised(direction, config_.iterations);
  const double longest = static_cast<double>(std::max(mean.size(0), mean.size(1)));
  auto values = as_matrix(parameters().values(), matrix.offset);
  values.mul_(1 - learning_rate * config_.weight_decay);
  values.add_(update, -learning_rate * kScale * std::sqrt(longest));
  if (BF16* const copy = parameters().bf16_copy(); copy != nullptr && values.is_cpu()) {
    at::from_blob(copy + matrix.offset, values.sizes(), at::kBFloat16).copy_(values);
  }
}

}  // namespace farstep
