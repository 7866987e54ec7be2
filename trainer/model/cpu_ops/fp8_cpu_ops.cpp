#include "trainer/model/cpu_ops/fp8_cpu_ops.h"

#include <algorithm>

#include "trainer/model/fused/fp8_layers.h"
#include "trainer/model/parallel_rows.h"

namespace farstep {

namespace {

// A scale for each matrix from its own largest value. Scales from earlier steps need no pass of
// their own, but a sudden large value would saturate.
void round_matrix(Fp8Format format, const BF16* x, int64_t size, BF16* y) {
  // One largest value a thread instead of a shared one, which all would wait for.
  std::vector<uint32_t> parts(static_cast<std::size_t>(at::get_num_threads()));
  for_rows(size, [&](int64_t begin, int64_t end) {
    auto& part = parts[static_cast<std::size_t>(at::get_thread_num())];
    part = std::max(part, largest_magnitude_bits(x + begin, end - begin));
  });
  const uint32_t largest = *std::ranges::max_element(parts);
  for_rows(size, [&](int64_t begin, int64_t end) {
    round_to_fp8(format, x + begin, end - begin, largest, y + begin);
  });
}

}  // namespace

int64_t Fp8CpuOps::scratch_bytes() const {
  return CpuOps<BF16>::scratch_bytes() + weights_arena_.bytes() + arena_.bytes();
}

void Fp8CpuOps::begin(const Context& context, const FusedWeights<BF16>& weights) {
  CpuOps<BF16>::begin(context, weights);
  const auto& config = context.config;
  const int64_t rows = context.shape.rows();
  scratch_ = arena_.cut([&](ArenaCutter& cutter) {
    Scratch scratch;
    const auto& shape = context.shape;
    cutter.cut(scratch.input,
               rows * std::max({config.hidden, config.intermediate, shape.mixed_width()}));
    cutter.cut(scratch.gradient,
               rows * std::max({config.hidden, shape.width(), 2 * config.intermediate}));
    return scratch;
  });
  // Once a step: later micro-batches add to the gradients and use the same weights. Another version
  // means that something else has changed the weights meanwhile.
  if (context.add && version_ == weights.version) return;
  round_weights(weights);
  version_ = weights.version;
}

void Fp8CpuOps::round_weights(const FusedWeights<BF16>& weights) {
  weights_ = weights_arena_.cut([&](ArenaCutter& cutter) {
    std::vector<BF16*> copies;
    for (const auto& block : weights.blocks) {
      for (const auto& weight : linear_layers(block)) {
        cutter.cut(copies.emplace_back(), weight.out * weight.in);
      }
    }
    return copies;
  });
  for (const auto& block : weights.blocks) {
    for (const auto& weight : linear_layers(block)) {
      round_matrix(kForwardFormat, weight.values, weight.out * weight.in,
                   weights_[static_cast<std::size_t>(weight.number)]);
    }
  }
}

const BF16* Fp8CpuOps::weight_factor(const Context& context, const MatrixWeight<BF16>& weight) {
  if (!takes_fp8(context, weight)) return weight.values;
  return weights_[static_cast<std::size_t>(weight.number)];
}

const BF16* Fp8CpuOps::input_factor(const Context& context, const MatrixWeight<BF16>& weight,
                                    const BF16* x) {
  if (!takes_fp8(context, weight)) return x;
  round_matrix(kForwardFormat, x, context.shape.rows() * weight.in, scratch_.input);
  return scratch_.input;
}

const BF16* Fp8CpuOps::gradient_factor(const Context& context, const MatrixWeight<BF16>& weight,
                                       const BF16* y_gradient) {
  if (!takes_fp8(context, weight)) return y_gradient;
  round_matrix(kGradientFormat, y_gradient, context.shape.rows() * weight.out, scratch_.gradient);
  return scratch_.gradient;
}

}  // namespace farstep
