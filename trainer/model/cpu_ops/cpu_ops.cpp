// A product is followed by a pass over its result. Both go piece by piece, so that the pass finds
// the piece in the cache. Threads divide rows; where rows add to one place, each thread has a part
// of its own, and the parts are added in order.
#include "trainer/model/cpu_ops/cpu_ops.h"

#include <algorithm>
#include <type_traits>

#include "trainer/base/stopped.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/numbers/convert.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/model/matmul/matrix_product.h"
#include "trainer/model/parallel_rows.h"

namespace farstep {

namespace {

// Rows of a piece, which stays in the cache between a product and the kernel that reads it. Pieces
// of 256 and 1,024 rows were no faster (docs/results/cpu_step.md).
constexpr int64_t kPieceRows = 512;
// A weight's gradient with this many values, 4 MiB, is larger than a core's cache. Written past the
// caches it evicts nothing. The first form of this made a step of 150M parameters 7 % shorter
// (commit 96b6213).
constexpr int64_t kUncachedValues = int64_t{1} << 20;
// Bounds the memory of the logits to 128 MiB. Vocabularies above 32,768 get fewer than 1,024 rows
// at a time, and add to the head's gradient more often.
constexpr int64_t kLogitValues = int64_t{1} << 25;

// Calls task(first, count) for one piece of the rows after the other.
template <typename Task>
void for_pieces(int64_t rows, const Task& task) {
  for (int64_t first = 0; first < rows; first += kPieceRows) {
    task(first, std::min(kPieceRows, rows - first));
  }
}

}  // namespace

template <typename T>
int64_t CpuOps<T>::logit_rows(int64_t rows, int64_t vocabulary) const {
  // Twice the usual piece: half as many additions to the head's gradient.
  return std::clamp<int64_t>(kLogitValues / vocabulary, 1, std::min(rows, 2 * kPieceRows));
}

template <typename T>
auto CpuOps<T>::cut_scratch(ArenaCutter& cutter, const LlamaConfig& config,
                            const AttentionShape& shape, int64_t threads) -> Scratch {
  const int64_t rows = shape.rows();
  Scratch scratch;
  cutter.cut(scratch.d_normal, rows * config.hidden);
  cutter.cut(scratch.product,
             std::min(rows, kPieceRows) * std::max(shape.width(), 2 * config.intermediate));
  cutter.cut(scratch.d_heads, rows * shape.width());
  cutter.cut(scratch.norm_parts, threads * config.hidden);
  scratch.attention = cut_attention_scratch<T>(cutter, shape, threads, chosen_attention());
  return scratch;
}

template <typename T>
int64_t CpuOps<T>::scratch_bytes_of(const LlamaConfig& config, const AttentionShape& shape,
                                    int64_t threads) {
  ArenaCutter cutter(nullptr);
  cut_scratch(cutter, config, shape, threads);
  return cutter.bytes();
}

// The scratch is sized for this pass; the arena keeps its memory between passes.
template <typename T>
void CpuOps<T>::begin(const Context& context, const FusedWeights<T>&) {
  scratch_ = arena_.cut([&](ArenaCutter& cutter) {
    return cut_scratch(cutter, context.config, context.shape, at::get_num_threads());
  });
}

template <typename T>
void CpuOps<T>::embed(const Context& context, const float* table, const int64_t* ids, float* x) {
  const int64_t hidden = context.config.hidden;
  for_rows(context.shape.rows(), [&](int64_t begin, int64_t end) {
    farstep::embed(table, ids + begin, end - begin, hidden, x + begin * hidden);
  });
}

template <typename T>
void CpuOps<T>::embed_backward(const Context& context, const int64_t* ids, bool add,
                               float* table_gradient) {
  const int64_t hidden = context.config.hidden;
  if (!add) clear(table_gradient, context.config.vocabulary * hidden);
  // Threads divide columns, not rows: rows with the same token would write the same place.
  for_rows(hidden, [&](int64_t begin, int64_t end) {
    farstep::embed_backward(context.buffers.d_stream, ids, context.shape.rows(), hidden, begin, end,
                            table_gradient);
  });
}

template <typename T>
void CpuOps<T>::normalise(const Context& context, const NormWeight& weight, const float* x, T* y,
                          float* inverse_rms, float* sum) {
  const int64_t hidden = context.config.hidden;
  for_rows(context.shape.rows(), [&](int64_t begin, int64_t end) {
    rms_norm(x + begin * hidden, weight.values, end - begin, hidden,
             static_cast<float>(context.config.norm_epsilon), y + begin * hidden,
             inverse_rms + begin, sum == nullptr ? nullptr : sum + begin * hidden);
  });
}

// Threads divide rows, but all rows add to the weight's gradient: each thread has a part of its
// own.
template <typename T>
void CpuOps<T>::normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                                   const float* inverse_rms) {
  const auto& buffers = context.buffers;
  const int64_t hidden = context.config.hidden;
  const int64_t parts = at::get_num_threads();
  // Threads that get no rows must leave zeros.
  std::fill_n(scratch_.norm_parts, parts * hidden, 0.0F);
  for_rows(context.shape.rows(), [&](int64_t begin, int64_t end) {
    T* const copy = std::is_same_v<T, float> ? nullptr : buffers.d_stream_copy + begin * hidden;
    rms_norm_backward(scratch_.d_normal + begin * hidden, x + begin * hidden, weight.values,
                      inverse_rms + begin, end - begin, hidden, buffers.d_stream + begin * hidden,
                      scratch_.norm_parts + at::get_thread_num() * hidden, copy);
  });
  // The threads' parts are added in a fixed order, so that bits do not depend on timing.
  for (int64_t i = 0; i < hidden; ++i) {
    float sum = context.add ? weight.gradient[i] : 0.0F;
    for (int64_t part = 0; part < parts; ++part) sum += scratch_.norm_parts[part * hidden + i];
    weight.gradient[i] = sum;
  }
}

template <typename T>
void CpuOps<T>::multiply(const Context& context, int64_t m, int64_t n, int64_t k,
                         const Factor<T>& a, const Factor<T>& b, const Product& c) {
  // Products take most of a pass, and each a small part of it.
  throw_if_stopped(context.stop);
  // Only a weight's gradient has a transposed first factor. It is read only after all of backward.
  const bool is_gradient = a.transposed;
  farstep::multiply(m, n, k, a, b,
                    {c.values, c.stride, c.add, is_gradient && m * n >= kUncachedValues});
}

template <typename T>
void CpuOps<T>::add_linear(const Context& context, const MatrixWeight<T>& weight, const T* x,
                           const float* /*stream*/, float* sum) {
  multiply(context, context.shape.rows(), weight.out, weight.in,
           {input_factor(context, weight, x), weight.in},
           {weight_factor(context, weight), weight.in, true}, {sum, weight.out, /*add=*/true});
}

template <typename T>
void CpuOps<T>::linear_backward(const Context& context, const MatrixWeight<T>& weight,
                                const T* y_gradient, const T* x) {
  const T* const gradient = gradient_factor(context, weight, y_gradient);
  weight_gradient(context, weight, gradient, input_factor(context, weight, x));
  multiply(context, context.shape.rows(), weight.in, weight.out, {gradient, weight.out},
           {weight_factor(context, weight), weight.in}, {scratch_.d_normal, weight.in});
}

template <typename T>
void CpuOps<T>::weight_gradient(const Context& context, const MatrixWeight<T>& weight,
                                const T* y_gradient, const T* x) {
  multiply(context, weight.out, weight.in, context.shape.rows(), {y_gradient, weight.out, true},
           {x, weight.in}, {weight.gradient, weight.in, context.add});
}

template <typename T>
void CpuOps<T>::project_heads(const Context& context, const MatrixWeight<T>& heads,
                              const BlockKept<T>& kept) {
  const int64_t hidden = context.config.hidden, width = context.shape.width();
  const T* const weight = weight_factor(context, heads);
  const T* const normal = input_factor(context, heads, kept.attention_normal);
  for_pieces(context.shape.rows(), [&](int64_t first, int64_t count) {
    multiply(context, count, width, hidden, {normal + first * hidden, hidden},
             {weight, hidden, true}, {scratch_.product, width});
    for_rows(count, [&](int64_t begin, int64_t end) {
      // `product` has the piece only, while the rotation counts rows from the first of all.
      rotate(context.rotary, Rotation::kForward, scratch_.product - first * width, first + begin,
             first + end, kept.heads);
    });
  });
}

template <typename T>
void CpuOps<T>::attend(const Context& context, const BlockKept<T>& kept) {
  farstep::attend(context.shape, kept.heads, scratch_.attention, kept.mixed, kept.log_sums,
                  context.stop);
}

// Rounds each piece of the product while it is in the cache.
template <typename T>
void CpuOps<T>::output_backward(const Context& context, const MatrixWeight<T>& output,
                                const BlockKept<T>& kept) {
  const auto& buffers = context.buffers;
  const int64_t hidden = output.out, mixed = output.in;
  const T* const weight = weight_factor(context, output);
  const T* const gradient = gradient_factor(context, output, buffers.d_stream_copy);
  weight_gradient(context, output, gradient, input_factor(context, output, kept.mixed));
  for_pieces(context.shape.rows(), [&](int64_t first, int64_t count) {
    multiply(context, count, mixed, hidden, {gradient + first * hidden, hidden}, {weight, mixed},
             {scratch_.product, mixed});
    for_rows(count, [&](int64_t begin, int64_t end) {
      round_rows(scratch_.product + begin * mixed, mixed, end - begin, mixed,
                 buffers.d_mixed + (first + begin) * mixed, mixed);
    });
  });
}

template <typename T>
void CpuOps<T>::attend_backward(const Context& context, const BlockKept<T>& kept) {
  farstep::attend_backward<T>(context.shape, {kept.heads, kept.mixed, kept.log_sums},
                              context.buffers.d_mixed, scratch_.attention, scratch_.d_heads,
                              context.stop);
  for_rows(context.shape.rows(), [&](int64_t begin, int64_t end) {
    rotate(context.rotary, Rotation::kBackward, scratch_.d_heads, begin, end,
           context.buffers.d_heads);
  });
}

// In fp32 the product is kept as it is; in bf16 the kernel rounds it into kept.gate_up.
template <typename T>
void CpuOps<T>::gate(const Context& context, const MatrixWeight<T>& gate_up_weight,
                     const BlockKept<T>& kept) {
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  const T* const weight = weight_factor(context, gate_up_weight);
  const T* const normal = input_factor(context, gate_up_weight, kept.feed_forward_normal);
  for_pieces(context.shape.rows(), [&](int64_t first, int64_t count) {
    T* const gate_up = kept.gate_up + first * 2 * width;
    T* const gated = kept.gated + first * width;
    float* product = scratch_.product;
    if constexpr (std::is_same_v<T, float>) product = gate_up;
    multiply(context, count, 2 * width, hidden, {normal + first * hidden, hidden},
             {weight, hidden, true}, {product, 2 * width});
    for_rows(count, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<T, float>) {
        swiglu(product + begin * 2 * width, end - begin, width, gated + begin * width);
      } else {
        swiglu(product + begin * 2 * width, end - begin, width, gate_up + begin * 2 * width,
               gated + begin * width);
      }
    });
  });
}

// The product, the gradient in `gated`, is needed piece by piece only, so it never exists as a
// whole.
template <typename T>
void CpuOps<T>::gate_backward(const Context& context, const MatrixWeight<T>& down,
                              const BlockKept<T>& kept) {
  const auto& buffers = context.buffers;
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  const T* const weight = weight_factor(context, down);
  const T* const gradient = gradient_factor(context, down, buffers.d_stream_copy);
  for_pieces(context.shape.rows(), [&](int64_t first, int64_t count) {
    multiply(context, count, width, hidden, {gradient + first * hidden, hidden}, {weight, width},
             {scratch_.product, width});
    for_rows(count, [&](int64_t begin, int64_t end) {
      swiglu_backward(scratch_.product + begin * width, kept.gate_up + (first + begin) * 2 * width,
                      end - begin, width, buffers.d_gate_up + (first + begin) * 2 * width,
                      kept.gated + (first + begin) * width);
    });
  });
  // After the pieces: the kernel above recomputes `gated`, the input of this layer.
  weight_gradient(context, down, gradient, input_factor(context, down, kept.gated));
}

template <typename T>
void CpuOps<T>::project_head(const Context& context, const MatrixWeight<T>& head,
                             const HeadRows& rows) {
  const auto& buffers = context.buffers;
  multiply(context, rows.count, head.out, head.in,
           {buffers.final_normal + rows.first * head.in, head.in}, {head.values, head.in, true},
           {buffers.logits, head.out});
}

template <typename T>
void CpuOps<T>::head_backward(const Context& context, const MatrixWeight<T>& head,
                              const HeadRows& rows, bool add) {
  const auto& buffers = context.buffers;
  const int64_t first = rows.first * head.in;
  multiply(context, head.out, head.in, rows.count, {buffers.d_logits, head.out, true},
           {buffers.final_normal + first, head.in}, {head.gradient, head.in, add});
  multiply(context, rows.count, head.in, head.out, {buffers.d_logits, head.out},
           {head.values, head.in}, {scratch_.d_normal + first, head.in});
}

template <typename T>
void CpuOps<T>::cross_entropy(const Context& context, const HeadRows& rows,
                              const int64_t* targets) {
  const int64_t vocabulary = context.config.vocabulary;
  for_rows(rows.count, [&](int64_t begin, int64_t end) {
    farstep::cross_entropy(context.buffers.logits + begin * vocabulary,
                           targets + rows.first + begin, end - begin, vocabulary,
                           context.buffers.losses + rows.first + begin);
  });
}

template <typename T>
void CpuOps<T>::cross_entropy_backward(const Context& context, const HeadRows& rows,
                                       const int64_t* targets, float scale) {
  const int64_t vocabulary = context.config.vocabulary;
  for_rows(rows.count, [&](int64_t begin, int64_t end) {
    farstep::cross_entropy(context.buffers.logits + begin * vocabulary,
                           targets + rows.first + begin, end - begin, vocabulary, scale,
                           context.buffers.losses + rows.first + begin,
                           context.buffers.d_logits + begin * vocabulary);
  });
}

template <typename T>
void CpuOps<T>::clear(float* values, int64_t size) {
  for_rows(size,
           [&](int64_t begin, int64_t end) { std::fill(values + begin, values + end, 0.0F); });
}

template class CpuOps<float>;
template class CpuOps<BF16>;

}  // namespace farstep
