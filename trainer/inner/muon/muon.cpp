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
// The most values of a batch on a GPU, except for a larger matrix: products of so many fill the
// largest GPUs. More would only take memory, about 16 bytes a value.
constexpr int64_t kBatchValues = int64_t{1} << 24;

std::vector<ParameterSpec> groups_of(std::span<const ParameterSpec> groups, bool are_hidden) {
  std::vector<ParameterSpec> found;
  std::ranges::copy_if(groups, std::back_inserter(found),
                       [&](const auto& group) { return group.is_hidden_matrix == are_hidden; });
  return found;
}

}  // namespace

double largest_update(std::span<const ParameterSpec> layout) {
  double longest = 0;
  for (const auto& matrix : groups_of(layout, true)) {
    const int64_t rows = matrix.shape.front();
    longest = std::max(longest, static_cast<double>(std::max(rows, matrix.size() / rows)));
  }
  // No value of a matrix exceeds its largest singular value, and the iteration leaves none above
  // the maximum of its polynomial on [0, 1].
  constexpr double kLargestSingularValue = 1.21;
  return kLargestSingularValue * kScale * std::sqrt(longest);
}

Muon::Muon(const MuonConfig& config, const AdamWConfig& adamw, Parameters& parameters,
           std::span<const ParameterSpec> groups)
    : HostOptimizer(parameters),
      config_(config),
      matrices_(groups_of(groups, true)),
      batches_(batches_of(matrices_, parameters.values().device())),
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

// A CPU multiplies matrix by matrix, so it takes one at a time, which stays in its cache.
std::vector<Muon::Batch> Muon::batches_of(std::span<const ParameterSpec> matrices,
                                          at::Device device) {
  std::vector<Batch> batches;
  int64_t offset_in_state = 0;
  for (const auto& matrix : matrices) {
    const int64_t rows = matrix.shape.front();
    const auto takes = [&](const Batch& batch) {
      const int64_t values = (std::ssize(batch.offsets) + 1) * matrix.size();
      return !device.is_cpu() && batch.rows == rows &&
             batch.rows * batch.columns == matrix.size() && values <= kBatchValues;
    };
    auto batch = std::ranges::find_if(batches, takes);
    if (batch == batches.end()) batch = batches.insert(batch, {rows, matrix.size() / rows, {}, {}});
    batch->offsets.push_back(matrix.offset);
    batch->offsets_in_state.push_back(offset_in_state);
    offset_in_state += matrix.size();
  }
  return batches;
}

void Muon::change_values(double learning_rate, double gradient_factor) {
  for (const auto& batch : batches_) update_batch(batch, learning_rate, gradient_factor);
  // Last: on a GPU it may scale all gradients in place.
  rest_.update(learning_rate, gradient_factor);
}

// LibTorch's operations on lists launch one kernel for many matrices.
void Muon::update_batch(const Batch& batch, double learning_rate, double gradient_factor) {
  const auto matrices_of = [&](const at::Tensor& flat, const std::vector<int64_t>& offsets) {
    std::vector<at::Tensor> matrices;
    for (const int64_t offset : offsets) {
      matrices.push_back(
          flat.narrow(0, offset, batch.rows * batch.columns).view({batch.rows, batch.columns}));
    }
    return matrices;
  };
  auto gradients = matrices_of(parameters().gradients(), batch.offsets);
  if (gradient_factor != 1) gradients = at::_foreach_mul(gradients, gradient_factor);
  const auto means = matrices_of(momentum_, batch.offsets_in_state);
  at::_foreach_lerp_(means, gradients, 1 - config_.momentum);
  const auto directions =
      config_.nesterov ? at::_foreach_lerp(gradients, means, config_.momentum) : means;
  const auto updates = orthogonalised(at::stack(directions), config_.iterations);
  const auto values = matrices_of(parameters().values(), batch.offsets);
  at::_foreach_mul_(values, 1 - learning_rate * config_.weight_decay);
  const auto longest = static_cast<double>(std::max(batch.rows, batch.columns));
  at::_foreach_add_(values, updates.unbind(), -learning_rate * kScale * std::sqrt(longest));
  BF16* const copy = parameters().bf16_copy();
  if (copy == nullptr || !parameters().values().is_cpu()) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    at::from_blob(copy + batch.offsets[i], values[i].sizes(), at::kBFloat16).copy_(values[i]);
  }
}

}  // namespace farstep
