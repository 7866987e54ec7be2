#include "trainer/model/gpu_ops.h"

#include <algorithm>

#include "trainer/cuda/cuda_check.h"
#include "trainer/kernels/gpu/cross_entropy.h"
#include "trainer/kernels/gpu/embedding.h"
#include "trainer/kernels/gpu/rms_norm.h"
#include "trainer/kernels/gpu/rotary.h"
#include "trainer/kernels/gpu/swiglu.h"

namespace farstep {

namespace {

// Most logits at once: 0.8 GB with their gradient, which keeps products as large as a GPU wants.
constexpr int64_t kLogitValues = int64_t{1} << 27;

}  // namespace

int64_t GpuOps::logit_rows(int64_t rows, int64_t vocabulary) const {
  return std::clamp<int64_t>(kLogitValues / vocabulary, 1, rows);
}

void GpuOps::begin(const Context& context, const FusedWeights<BF16>&) {
  use_gpu(device_);
  stream_ = current_stream(device_);
  const int64_t rows = context.shape.rows();
  scratch_ = arena_.cut([&](ArenaCutter& cutter) {
    Scratch scratch;
    cutter.cut(scratch.norm_parts, rms_norm_parts(rows) * context.config.hidden);
    cutter.cut(scratch.token_order, rows);
    return scratch;
  });
}

void GpuOps::embed(const Context& context, const float* table, const int64_t* ids, float* x) {
  FARSTEP_CUDA_CHECK(
      launch_embed(table, ids, context.shape.rows(), context.config.hidden, x, stream_));
}

void GpuOps::embed_backward(const Context& context, const int64_t* ids, bool add,
                            float* table_gradient) {
  const int64_t hidden = context.config.hidden;
  if (!add) clear(table_gradient, context.config.vocabulary * hidden);
  FARSTEP_CUDA_CHECK(launch_embed_backward(context.buffers.d_stream, ids, context.shape.rows(),
                                           hidden, scratch_.token_order, table_gradient, stream_));
}

void GpuOps::normalise(const Context& context, const NormWeight& weight, const float* x, BF16* y,
                       float* inverse_rms, float* copy) {
  FARSTEP_CUDA_CHECK(launch_rms_norm(x, weight.values, context.shape.rows(), context.config.hidden,
                                     static_cast<float>(context.config.norm_epsilon), y,
                                     inverse_rms, copy, stream_));
}

void GpuOps::normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                                const float* inverse_rms) {
  const auto& buffers = context.buffers;
  const RmsNormBackward norm{.y_gradient = buffers.d_normal,
                             .x = x,
                             .weight = weight.values,
                             .inverse_rms = inverse_rms,
                             .rows = context.shape.rows(),
                             .width = context.config.hidden};
  FARSTEP_CUDA_CHECK(launch_rms_norm_backward(norm, buffers.d_stream, buffers.d_stream_copy,
                                              weight.gradient, context.add, scratch_.norm_parts,
                                              stream_));
}

void GpuOps::multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                      const Product& c) {
  gpu_multiply(device_, m, n, k, a, b, c);
}

void GpuOps::forward_product(const Context& context, const MatrixWeight<BF16>& weight,
                             const BF16* x, const GpuProduct& y) {
  gpu_multiply(device_, context.shape.rows(), weight.out, weight.in, {x, weight.in},
               {weight.values, weight.in, true}, y);
}

void GpuOps::input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                    const BF16* y_gradient, const GpuProduct& x_gradient) {
  gpu_multiply(device_, context.shape.rows(), weight.in, weight.out, {y_gradient, weight.out},
               {weight.values, weight.in}, x_gradient);
}

void GpuOps::weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                     const BF16* y_gradient, const BF16* x) {
  gpu_multiply(device_, weight.out, weight.in, context.shape.rows(), {y_gradient, weight.out, true},
               {x, weight.in}, {.exact = weight.gradient, .add = context.add});
}

void GpuOps::add_linear(const Context& context, const MatrixWeight<BF16>& weight, const BF16* x,
                        float* y) {
  forward_product(context, weight, x, {.exact = y, .add = true});
}

void GpuOps::linear_backward(const Context& context, const MatrixWeight<BF16>& weight,
                             const BF16* y_gradient, const BF16* x) {
  input_gradient_product(context, weight, y_gradient, {.exact = context.buffers.d_normal});
  weight_gradient_product(context, weight, y_gradient, x);
}

void GpuOps::project_heads(const Context& context, const MatrixWeight<BF16>& heads,
                           const BlockKept<BF16>& kept) {
  forward_product(context, heads, kept.attention_normal, {.rounded = kept.heads});
  FARSTEP_CUDA_CHECK(launch_rotate(context.rotary, context.shape.rows(), kept.heads, stream_));
}

void GpuOps::attend(const Context& context, const BlockKept<BF16>& kept) {
  gpu_attend(device_, context.shape, kept.heads, kept.mixed, kept.log_sums);
}

void GpuOps::output_backward(const Context& context, const MatrixWeight<BF16>& output,
                             const BlockKept<BF16>& kept) {
  const auto& buffers = context.buffers;
  input_gradient_product(context, output, buffers.d_stream_copy, {.rounded = buffers.d_mixed});
  weight_gradient_product(context, output, buffers.d_stream_copy, kept.mixed);
}

void GpuOps::attend_backward(const Context& context, const BlockKept<BF16>& kept) {
  const auto rotated = gpu_attend_backward(device_, context.shape, kept.heads, kept.mixed,
                                           kept.log_sums, context.buffers.d_mixed);
  const auto values = [](const at::Tensor& gradient) {
    return static_cast<const BF16*>(gradient.const_data_ptr());
  };
  FARSTEP_CUDA_CHECK(launch_rotate_back(
      context.rotary, {values(rotated.queries), values(rotated.keys), values(rotated.values)},
      context.shape.rows(), context.buffers.d_heads, stream_));
}

void GpuOps::gate(const Context& context, const MatrixWeight<BF16>& gate_up,
                  const BlockKept<BF16>& kept) {
  forward_product(context, gate_up, kept.feed_forward_normal, {.rounded = kept.gate_up});
  FARSTEP_CUDA_CHECK(launch_swiglu(kept.gate_up, context.shape.rows(), context.config.intermediate,
                                   context.buffers.gated, stream_));
}

void GpuOps::gate_backward(const Context& context, const MatrixWeight<BF16>& down,
                           const BlockKept<BF16>& kept) {
  const auto& buffers = context.buffers;
  // The gradient in `gated` lies where `gated` then takes its place.
  input_gradient_product(context, down, buffers.d_stream_copy, {.rounded = buffers.gated});
  FARSTEP_CUDA_CHECK(launch_swiglu_backward(buffers.gated, kept.gate_up, context.shape.rows(),
                                            context.config.intermediate, buffers.d_gate_up,
                                            buffers.gated, stream_));
  weight_gradient_product(context, down, buffers.d_stream_copy, buffers.gated);
}

void GpuOps::cross_entropy(const Context& context, const HeadRows& rows, const int64_t* targets) {
  const auto& buffers = context.buffers;
  FARSTEP_CUDA_CHECK(launch_cross_entropy(
      buffers.logits, targets + rows.first, rows.count, context.config.vocabulary, /*scale=*/1,
      buffers.losses + rows.first, /*logit_gradient=*/nullptr, stream_));
}

void GpuOps::cross_entropy_backward(const Context& context, const HeadRows& rows,
                                    const int64_t* targets, float scale) {
  const auto& buffers = context.buffers;
  FARSTEP_CUDA_CHECK(launch_cross_entropy(buffers.logits, targets + rows.first, rows.count,
                                          context.config.vocabulary, scale,
                                          buffers.losses + rows.first, buffers.d_logits, stream_));
}

void GpuOps::clear(float* values, int64_t size) {
  FARSTEP_CUDA_CHECK(
      cudaMemsetAsync(values, 0, static_cast<std::size_t>(size) * sizeof(float), stream_));
}

}  // namespace farstep
