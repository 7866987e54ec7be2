// Rotary embedding (Su et al. 2021): each pair of a head's values turns by an angle in proportion
// to its position, so that scores depend on distances alone.
#include "trainer/model/llama/rotary_table.h"

#include <bit>
#include <numbers>
#include <utility>

namespace farstep {

namespace {

// Llama 3.1's scaling. Low frequencies are divided by the factor, so that their angles stay in the
// range of the original length; high ones, which tell neighbours apart, keep their value. Between
// the two the weight of the undivided frequency grows with its turns in the original length.
at::Tensor scaled(const at::Tensor& frequencies, const RopeScaling& scaling) {
  const auto wavelengths = (2 * std::numbers::pi) / frequencies;
  const auto turns = static_cast<double>(scaling.original_max_position_embeddings) / wavelengths;
  const auto weight =
      ((turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor))
          .clamp(0, 1);
  return (1 - weight) * frequencies / scaling.factor + weight * frequencies;
}

}  // namespace

at::Tensor rotary_frequencies(const LlamaConfig& config, at::Device device) {
  // Rounds to fp32 at the same places as `transformers`; at long positions it makes a difference.
  const int64_t size = config.head_size();
  const auto fp32 = at::device(device).dtype(at::kFloat);
  const auto exponents = at::arange(size / 2, fp32) * 2 / static_cast<double>(size);
  const auto frequencies = at::pow(at::Scalar(config.rope_theta), exponents).reciprocal();
  return config.rope_scaling ? scaled(frequencies, *config.rope_scaling) : frequencies;
}

RotaryTable::RotaryTable(at::Tensor frequencies) : frequencies_(std::move(frequencies)) {
  extend(0);
}

void RotaryTable::extend(int64_t positions) {
  const auto angles = at::outer(at::arange(positions, frequencies_.options()), frequencies_);
  cosines_ = angles.cos();
  sines_ = angles.sin();
}

// Grows to powers of two, so that slowly growing sequences rarely recompute the tables.
std::pair<at::Tensor, at::Tensor> RotaryTable::tables(int64_t positions) {
  if (cosines_.size(0) < positions) {
    extend(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(positions))));
  }
  return {cosines_.narrow(0, 0, positions), sines_.narrow(0, 0, positions)};
}

at::Tensor RotaryTable::rotate(const at::Tensor& x, int64_t first) {
  // Pairs are (i, i + D / 2), as Hugging Face's weights have them; the paper's are (2 i, 2 i + 1).
  const int64_t half = frequencies_.numel(), length = x.size(2);
  const auto [all_cosines, all_sines] = tables(first + length);
  const auto cosines = all_cosines.narrow(0, first, length);  // (T, D / 2)
  const auto sines = all_sines.narrow(0, first, length);
  const auto low = x.narrow(3, 0, half);  // (B, heads, T, D / 2)
  const auto high = x.narrow(3, half, half);
  const auto rotated = at::cat({low * cosines - high * sines, high * cosines + low * sines}, 3);
  return rotated.to(x.scalar_type());
}

}  // namespace farstep
