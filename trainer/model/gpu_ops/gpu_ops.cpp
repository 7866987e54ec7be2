#include "trainer/model/gpu_ops/gpu_ops.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/cuda/cuda_check.h"
#include "trainer/kernels/gpu/cross_entropy.h"
#include "trainer/kernels/gpu/embedding.h"
#include "trainer/kernels/gpu/rms_norm.h"
#include "trainer/kernels/gpu/rotary.h"
#include "trainer/kernels/gpu/swiglu.h"

namespace farstep {

namespace {

constexpr int64_t kLogitShare = 64;  // of the GPU's memory, for logits
// Logit rows are multiples of the largest tile of cuBLAS's kernels.
constexpr int64_t kTileRows = 256;

const BF16* values_of(const at::Tensor& tensor) {
  return static_cast<const BF16*>(tensor.const_data_ptr());
}

}  // namespace

GpuOps::GpuOps(at::Device device)
    : arena_(device),
      fork_(device),
      products_(device),
      device_(device),
      most_logit_bytes_(std::min(kMostGpuLogitBytes, gpu_memory_bytes(device) / kLogitShare)) {}

// At least one tile, at most all rows, else as many whole tiles as fit the limit.
int64_t GpuOps::logit_rows(int64_t rows, int64_t vocabulary) const {
  const int64_t most = most_logit_bytes_ / (vocabulary * static_cast<int64_t>(sizeof(float)));
  return std::clamp(most / kTileRows * kTileRows, std::min(rows, kTileRows), rows);
}

// Resets the state of a pass, which an exception may have left behind.
void GpuOps::begin(const Context& context, const FusedWeights<BF16>&) {
  use_gpu(device_);
  fork_.begin();
  stream_ = current_stream(device_);
  waiting_ = {};
  rounded_gradient_ = nullptr;
  attention_.resize(context.buffers.blocks.size());
  const int64_t rows = context.shape.rows(), hidden = context.config.hidden;
  scratch_ = arena_.cut([&](ArenaCutter& cutter) {
    Scratch scratch;
    cutter.cut(scratch.branch, rows * hidden);
    cutter.cut(scratch.d_normal, rows * hidden);
    cutter.cut(scratch.d_gated, rows * context.config.intermediate);
    cutter.cut(scratch.d_stream_copy, rows * hidden);
    cutter.cut(scratch.norm_parts, rms_norm_parts(rows) * hidden);
    FARSTEP_CUDA_CHECK(cut_embed_room(cutter, rows, hidden, scratch.embedding));
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
  FARSTEP_CUDA_CHECK(launch_embed_backward({.x_gradient = context.buffers.d_stream,
                                            .tokens = ids,
                                            .rows = context.shape.rows(),
                                            .width = hidden,
                                            .vocabulary = context.config.vocabulary},
                                           scratch_.embedding, table_gradient, stream_));
}

void GpuOps::normalise(const Context& context, const NormWeight& weight, const float* x, BF16* y,
                       float* inverse_rms, float* /*sum*/) {
  RmsNorm norm{.x = x,
               .weight = weight.values,
               .rows = context.shape.rows(),
               .width = context.config.hidden,
               .epsilon = static_cast<float>(context.config.norm_epsilon),
               .y = y,
               .inverse_rms = inverse_rms,
               .largest = input_largest(weight.before)};
  if (waiting_.sum != nullptr) {
    // One kernel adds the branch and normalises, so the sum passes through memory once.
    FARSTEP_CHECK(waiting_.sum == x, "another norm comes before that of the sum");
    norm.x = waiting_.stream;
    norm.branch = scratch_.branch;
    norm.sum = waiting_.sum;
    waiting_ = {};
  }
  // Where blocks are recomputed, products on the fork may still read the block before in the same
  // memory.
  fork_.let_write(stream_, y);
  FARSTEP_CUDA_CHECK(launch_rms_norm(norm, stream_));
}

void GpuOps::normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                                const float* inverse_rms) {
  const auto& buffers = context.buffers;
  // Two copies take turns, as products of weights' gradients may still read the other.
  BF16* const copy =
      rounded_gradient_ == scratch_.d_stream_copy ? buffers.d_stream_copy : scratch_.d_stream_copy;
  const RmsNormBackward norm{.y_gradient = scratch_.d_normal,
                             .x = x,
                             .weight = weight.values,
                             .inverse_rms = inverse_rms,
                             .rows = context.shape.rows(),
                             .width = context.config.hidden,
                             .x_gradient = buffers.d_stream,
                             .copy = copy,
                             .largest = gradient_largest(weight.after)};
  fork_.let_write(stream_, copy);
  FARSTEP_CUDA_CHECK(
      launch_rms_norm_backward(norm, weight.gradient, context.add, scratch_.norm_parts, stream_));
  rounded_gradient_ = copy;
}

void GpuOps::forward_product(const Context& context, const MatrixWeight<BF16>& weight,
                             const BF16* x, const GpuProduct& y) {
  products_.multiply(context.shape.rows(), weight.out, weight.in, {x, weight.in},
                     {weight.values, weight.in, true}, y);
}

void GpuOps::input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                    const BF16* y_gradient, const GpuProduct& x_gradient) {
  products_.multiply(context.shape.rows(), weight.in, weight.out, {y_gradient, weight.out},
                     {weight.values, weight.in}, x_gradient);
}

void GpuOps::weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                     const BF16* y_gradient, const BF16* x, cudaStream_t) {
  products_.multiply(weight.out, weight.in, context.shape.rows(), {y_gradient, weight.out, true},
                     {x, weight.in}, {.exact = weight.gradient, .add = context.add});
}

void GpuOps::fork_weight_gradient(const Context& context, const MatrixWeight<BF16>& weight,
                                  const BF16* y_gradient, const BF16* x) {
  fork_.fork(stream_, {y_gradient, x, gradient_copy()}, [&](cudaStream_t stream) {
    weight_gradient_product(context, weight, y_gradient, x, stream);
  });
}

void GpuOps::finish_gradients() {
  fork_.join(stream_);
}

void GpuOps::project_heads(const Context& context, const MatrixWeight<BF16>& heads,
                           const BlockKept<BF16>& kept) {
  forward_product(context, heads, kept.attention_normal, {.rounded = kept.heads});
  FARSTEP_CUDA_CHECK(launch_rotate(context.rotary, context.shape.rows(), kept.heads, stream_));
}

void GpuOps::attend(const Context& context, const BlockKept<BF16>& kept) {
  auto& result = attention_[kept.place];
  // Releasing the old result returns its memory to LibTorch, which may hand it out at once.
  if (result.mixed.defined()) fork_.let_write(stream_, values_of(result.mixed));
  result = {};
  result = gpu_attend(device_, context.shape, kept.heads);
}

const BF16* GpuOps::mixed(const BlockKept<BF16>& kept) const {
  return values_of(attention_[kept.place].mixed);
}

void GpuOps::gate(const Context& context, const MatrixWeight<BF16>& gate_up,
                  const BlockKept<BF16>& kept) {
  forward_product(context, gate_up, kept.feed_forward_normal, {.rounded = kept.gate_up});
  fork_.let_write(stream_, kept.gated);
  FARSTEP_CUDA_CHECK(launch_swiglu(kept.gate_up, context.shape.rows(), context.config.intermediate,
                                   kept.gated, input_largest(gate_up.number + 1), stream_));
}

void GpuOps::add_linear(const Context& context, const MatrixWeight<BF16>& weight, const BF16* x,
                        const float* stream, float* sum) {
  forward_product(context, weight, x, {.rounded = scratch_.branch});
  waiting_ = {stream, sum};
}

// The weight's gradient is launched first, so that it runs beside the input's.
void GpuOps::linear_backward(const Context& context, const MatrixWeight<BF16>& weight,
                             const BF16* y_gradient, const BF16* x) {
  // First, on the main stream: both products read the converted gradient.
  take_gradient(context, weight, y_gradient);
  fork_weight_gradient(context, weight, y_gradient, x);
  input_gradient_product(context, weight, y_gradient, {.rounded = scratch_.d_normal});
}

void GpuOps::output_backward(const Context& context, const MatrixWeight<BF16>& output,
                             const BlockKept<BF16>& kept) {
  take_gradient(context, output, rounded_gradient_);
  fork_weight_gradient(context, output, rounded_gradient_, mixed(kept));
  input_gradient_product(context, output, rounded_gradient_, {.rounded = context.buffers.d_mixed});
}

void GpuOps::attend_backward(const Context& context, const BlockKept<BF16>& kept) {
  const auto rotated = gpu_attend_backward(device_, context.shape, kept.heads,
                                           attention_[kept.place], context.buffers.d_mixed);
  fork_.let_write(stream_, context.buffers.d_heads);
  FARSTEP_CUDA_CHECK(launch_rotate_back(
      context.rotary,
      {values_of(rotated.queries), values_of(rotated.keys), values_of(rotated.values)},
      context.shape.rows(), context.buffers.d_heads, stream_));
}

void GpuOps::gate_backward(const Context& context, const MatrixWeight<BF16>& down,
                           const BlockKept<BF16>& kept) {
  const auto& buffers = context.buffers;
  take_gradient(context, down, rounded_gradient_);
  input_gradient_product(context, down, rounded_gradient_, {.rounded = scratch_.d_gated});
  fork_.let_write(stream_, buffers.d_gate_up);
  const SwigluBackward swiglu{.out_gradient = scratch_.d_gated,
                              .gate_up = kept.gate_up,
                              .rows = context.shape.rows(),
                              .width = context.config.intermediate,
                              .gate_up_gradient = buffers.d_gate_up,
                              .largest = gradient_largest(down.number - 1)};
  FARSTEP_CUDA_CHECK(launch_swiglu_backward(swiglu, stream_));
  fork_weight_gradient(context, down, rounded_gradient_, kept.gated);
}

// Logits stay fp32: in bf16 they would put 0.003 to 0.03 nats of error into a token's loss
// (docs/results/gpu_kernels.md).
void GpuOps::project_head(const Context& context, const MatrixWeight<BF16>& head,
                          const HeadRows& rows) {
  const auto& buffers = context.buffers;
  products_.multiply(rows.count, head.out, head.in,
                     {buffers.final_normal + rows.first * head.in, head.in},
                     {head.values, head.in, true}, {.exact = buffers.logits});
}

void GpuOps::head_backward(const Context& context, const MatrixWeight<BF16>& head,
                           const HeadRows& rows, bool add) {
  const auto& buffers = context.buffers;
  const int64_t first = rows.first * head.in;
  // final_normal is not among the arrays: nothing writes it before the join.
  fork_.fork(stream_, {buffers.d_logits}, [&](cudaStream_t) {
    products_.multiply(head.out, head.in, rows.count, {buffers.d_logits, head.out, true},
                       {buffers.final_normal + first, head.in},
                       {.exact = head.gradient, .add = add});
  });
  products_.multiply(rows.count, head.in, head.out, {buffers.d_logits, head.out},
                     {head.values, head.in}, {.rounded = scratch_.d_normal + first});
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
  fork_.let_write(stream_, buffers.d_logits);
  FARSTEP_CUDA_CHECK(launch_cross_entropy(buffers.logits, targets + rows.first, rows.count,
                                          context.config.vocabulary, scale,
                                          buffers.losses + rows.first, buffers.d_logits, stream_));
}

void GpuOps::clear(float* values, int64_t size) {
  FARSTEP_CUDA_CHECK(
      cudaMemsetAsync(values, 0, static_cast<std::size_t>(size) * sizeof(float), stream_));
}

}  // namespace farstep
