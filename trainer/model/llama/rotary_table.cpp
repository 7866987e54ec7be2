// Rotary embedding (Su et al. 2021): each pair of a head's values turns by an angle in proportion
// to its position, so that scores depend on distances alone.
#include "trainer/model/llama/rotary_table.h"

#include <bit>

namespace farstep {

RotaryTable::RotaryTable(int64_t head_size, double theta, at::Device device)
    : half_(head_size / 2), theta_(theta), device_(device) {
  extend(0);
}

void RotaryTable::extend(int64_t positions) {
  // Rounds to fp32 at the same places as `transformers`; at long positions it makes a difference.
  const auto fp32 = at::device(device_).dtype(at::kFloat);
  const auto exponents = at::arange(half_, fp32) * 2 / static_cast<double>(2 * half_);
  const auto frequencies = at::pow(at::Scalar(theta_), exponents).reciprocal();
  const auto angles = at::outer(at::arange(positions, fp32), frequencies);
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
  const int64_t length = x.size(2);
  const auto [all_cosines, all_sines] = tables(first + length);
  const auto cosines = all_cosines.narrow(0, first, length);  // (T, D / 2)
  const auto sines = all_sines.narrow(0, first, length);
  const auto low = x.narrow(3, 0, half_);  // (B, heads, T, D / 2)
  const auto high = x.narrow(3, half_, half_);
  const auto rotated = at::cat({low * cosines - high * sines, high * cosines + low * sines}, 3);
  return rotated.to(x.scalar_type());
}

}  // namespace farstep
