#include "trainer/model/fused_block.h"

#include <algorithm>
#include <type_traits>

#include "trainer/kernels/convert.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/model/matrix_product.h"
#include "trainer/model/parallel_rows.h"

namespace farstep {

namespace {

// Calls task(first, count) for pieces of the rows, one after the other.
template <typename Task>
void for_pieces(int64_t rows, const Task& task) {
  for (int64_t first = 0; first < rows; first += kProductRows) {
    task(first, std::min(kProductRows, rows - first));
  }
}

// kept.heads from kept.attention_normal.
template <typename T>
void project_heads(const BlockContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept) {
  const int64_t hidden = context.config.hidden, width = context.shape.width();
  for_pieces(context.shape.rows(), [&](int64_t first, int64_t count) {
    float* const product = context.buffers.product;
    multiply(count, width, hidden, {kept.attention_normal + first * hidden, hidden},
             {weights.heads.values, hidden, true}, {product, width});
    for_rows(count, [&](int64_t begin, int64_t end) {
      // `product` has the piece alone; the rotation counts rows from the first of all.
      rotate(context.rotary, Rotation::kForward, product - first * width, first + begin,
             first + end, kept.heads);
    });
  });
}

// kept.gate_up and buffers.gated from kept.feed_forward_normal.
template <typename T>
void gate(const BlockContext<T>& context, const BlockWeights<T>& weights,
          const BlockKept<T>& kept) {
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  for_pieces(context.shape.rows(), [&](int64_t first, int64_t count) {
    T* const gate_up = kept.gate_up + first * 2 * width;
    T* const gated = context.buffers.gated + first * width;
    float* product = context.buffers.product;
    if constexpr (std::is_same_v<T, float>) product = gate_up;
    multiply(count, 2 * width, hidden, {kept.feed_forward_normal + first * hidden, hidden},
             {weights.gate_up.values, hidden, true}, {product, 2 * width});
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

// buffers.d_gate_up and buffers.gated from buffers.d_stream_copy.
template <typename T>
void gate_backward(const BlockContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept) {
  const auto& buffers = context.buffers;
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  for_pieces(context.shape.rows(), [&](int64_t first, int64_t count) {
    multiply(count, width, hidden, {buffers.d_stream_copy + first * hidden, hidden},
             {weights.down.values, width}, {buffers.product, width});
    for_rows(count, [&](int64_t begin, int64_t end) {
      swiglu_backward(buffers.product + begin * width, kept.gate_up + (first + begin) * 2 * width,
                      end - begin, width, buffers.d_gate_up + (first + begin) * 2 * width,
                      buffers.gated + (first + begin) * width);
    });
  });
}

template <typename T>
void feed_forward_backward(const BlockContext<T>& context, const BlockWeights<T>& weights,
                           const BlockKept<T>& kept) {
  const auto& buffers = context.buffers;
  const int64_t rows = context.shape.rows();
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  gate_backward(context, weights, kept);
  multiply(hidden, width, rows, {buffers.d_stream_copy, hidden, true}, {buffers.gated, width},
           {weights.down.gradient, width, context.add});
  multiply(2 * width, hidden, rows, {buffers.d_gate_up, 2 * width, true},
           {kept.feed_forward_normal, hidden}, {weights.gate_up.gradient, hidden, context.add});
  multiply(rows, hidden, 2 * width, {buffers.d_gate_up, 2 * width},
           {weights.gate_up.values, hidden}, {buffers.d_normal, hidden});
  normalise_backward(context, weights.feed_forward_norm, kept.feed_forward_input,
                     kept.feed_forward_inverse_rms);
}

template <typename T>
void attention_backward(const BlockContext<T>& context, const BlockWeights<T>& weights,
                        const BlockKept<T>& kept) {
  const auto& buffers = context.buffers;
  const int64_t rows = context.shape.rows();
  const int64_t hidden = context.config.hidden, width = context.shape.width();
  multiply(hidden, hidden, rows, {buffers.d_stream_copy, hidden, true}, {kept.mixed, hidden},
           {weights.output.gradient, hidden, context.add});
  multiply(rows, hidden, hidden, {buffers.d_stream_copy, hidden}, {weights.output.values, hidden},
           {buffers.d_normal, hidden});
  for_rows(rows, [&](int64_t begin, int64_t end) {
    round_rows(buffers.d_normal + begin * hidden, hidden, end - begin, hidden,
               buffers.d_mixed + begin * hidden, hidden);
  });
  attend_backward(context.shape, kept.heads, kept.log_sums, buffers.d_mixed, buffers.attention,
                  buffers.d_heads_exact);
  for_rows(rows, [&](int64_t begin, int64_t end) {
    rotate(context.rotary, Rotation::kBackward, buffers.d_heads_exact, begin, end, buffers.d_heads);
  });
  multiply(width, hidden, rows, {buffers.d_heads, width, true}, {kept.attention_normal, hidden},
           {weights.heads.gradient, hidden, context.add});
  multiply(rows, hidden, width, {buffers.d_heads, width}, {weights.heads.values, hidden},
           {buffers.d_normal, hidden});
  normalise_backward(context, weights.attention_norm, kept.attention_input,
                     kept.attention_inverse_rms);
}

}  // namespace

template <typename T>
void normalise(const BlockContext<T>& context, const NormWeight& weight, const float* x, T* y,
               float* inverse_rms, float* copy) {
  const int64_t hidden = context.config.hidden;
  for_rows(context.shape.rows(), [&](int64_t begin, int64_t end) {
    rms_norm(x + begin * hidden, weight.values, end - begin, hidden,
             static_cast<float>(context.config.norm_epsilon), y + begin * hidden,
             inverse_rms + begin, copy == nullptr ? nullptr : copy + begin * hidden);
  });
}

template <typename T>
void normalise_backward(const BlockContext<T>& context, const NormWeight& weight, const float* x,
                        const float* inverse_rms) {
  const auto& buffers = context.buffers;
  const int64_t hidden = context.config.hidden;
  const int64_t parts = at::get_num_threads();
  std::fill_n(buffers.norm_parts, parts * hidden, 0.0F);
  for_rows(context.shape.rows(), [&](int64_t begin, int64_t end) {
    T* const copy = std::is_same_v<T, float> ? nullptr : buffers.d_stream_copy + begin * hidden;
    rms_norm_backward(buffers.d_normal + begin * hidden, x + begin * hidden, weight.values,
                      inverse_rms + begin, end - begin, hidden, buffers.d_stream + begin * hidden,
                      buffers.norm_parts + at::get_thread_num() * hidden, copy);
  });
  for (int64_t i = 0; i < hidden; ++i) {
    float sum = context.add ? weight.gradient[i] : 0.0F;
    for (int64_t part = 0; part < parts; ++part) sum += buffers.norm_parts[part * hidden + i];
    weight.gradient[i] = sum;
  }
}

template <typename T>
void block_forward(const BlockContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept, float* output) {
  const int64_t rows = context.shape.rows();
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  normalise(context, weights.attention_norm, kept.attention_input, kept.attention_normal,
            kept.attention_inverse_rms, kept.feed_forward_input);
  project_heads(context, weights, kept);
  attend(context.shape, kept.heads, context.buffers.attention, kept.mixed, kept.log_sums);
  multiply(rows, hidden, hidden, {kept.mixed, hidden}, {weights.output.values, hidden, true},
           {kept.feed_forward_input, hidden, /*add=*/true});
  normalise(context, weights.feed_forward_norm, kept.feed_forward_input, kept.feed_forward_normal,
            kept.feed_forward_inverse_rms, output);
  gate(context, weights, kept);
  multiply(rows, hidden, width, {context.buffers.gated, width}, {weights.down.values, width, true},
           {output, hidden, /*add=*/true});
}

template <typename T>
void block_backward(const BlockContext<T>& context, const BlockWeights<T>& weights,
                    const BlockKept<T>& kept) {
  feed_forward_backward(context, weights, kept);
  attention_backward(context, weights, kept);
}

template void normalise(const BlockContext<float>&, const NormWeight&, const float*, float*, float*,
                        float*);
template void normalise(const BlockContext<BF16>&, const NormWeight&, const float*, BF16*, float*,
                        float*);
template void normalise_backward(const BlockContext<float>&, const NormWeight&, const float*,
                                 const float*);
template void normalise_backward(const BlockContext<BF16>&, const NormWeight&, const float*,
                                 const float*);
template void block_forward(const BlockContext<float>&, const BlockWeights<float>&,
                            const BlockKept<float>&, float*);
template void block_forward(const BlockContext<BF16>&, const BlockWeights<BF16>&,
                            const BlockKept<BF16>&, float*);
template void block_backward(const BlockContext<float>&, const BlockWeights<float>&,
                             const BlockKept<float>&);
template void block_backward(const BlockContext<BF16>&, const BlockWeights<BF16>&,
                             const BlockKept<BF16>&);

}  // namespace farstep
