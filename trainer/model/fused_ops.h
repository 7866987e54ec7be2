// The operations that a pass of the fused model consists of, on one kind of device.
//
// FusedLlama has their order, written once for all devices. Pointers are to the device's memory,
// arrays those of fused_buffers.h and fused_weights.h, of all R = B T rows unless told otherwise.
// On a GPU an operation is done when the current stream has come to it. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/kernels/factor.h"
#include "trainer/kernels/rotary.h"
#include "trainer/model/fused_buffers.h"
#include "trainer/model/fused_weights.h"

namespace farstep {

// What all operations of one pass share.
template <typename T>
struct PassContext {
  const LlamaConfig& config;
  AttentionShape shape;
  RotaryRows rotary;
  FusedBuffers<T> buffers;
  bool add = false;  // to the gradients that are there, instead of replacing them
};

// Some rows of the head: the first of them, and how many.
struct HeadRows {
  int64_t first = 0, count = 0;
};

template <typename T>
class FusedOps {
 public:
  using Context = PassContext<T>;

  virtual ~FusedOps() = default;

  virtual at::Device device() const = 0;
  // Bytes beside the buffers that the operations hold.
  virtual int64_t scratch_bytes() const = 0;
  // How many of `rows` rows have their logits in memory at once.
  virtual int64_t logit_rows(int64_t rows, int64_t vocabulary) const = 0;
  // Comes before the operations of a pass with these weights: makes room for what they need beside
  // the buffers.
  virtual void begin(const Context& context, const FusedWeights<T>& weights) = 0;

  // x (R, C): the rows of table (V, C) that the ids (R) name.
  virtual void embed(const Context& context, const float* table, const int64_t* ids, float* x) = 0;
  // The gradient of table from d_stream; it is added where `add` says so.
  virtual void embed_backward(const Context& context, const int64_t* ids, bool add,
                              float* table_gradient) = 0;

  // y (R, C) = RMSNorm of x (R, C), which goes on in `copy` unless that is null.
  virtual void normalise(const Context& context, const NormWeight& weight, const float* x, T* y,
                         float* inverse_rms, float* copy) = 0;
  // Adds the gradient of d_normal through the norm to d_stream, leaves that in d_stream_copy too,
  // and the weight's gradient in the weight.
  virtual void normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                                  const float* inverse_rms) = 0;

  // c (m, n) from a (m, k) and b (k, n): the head's products.
  virtual void multiply(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                        const Product& c) = 0;

  // Of a block's linear layer, y = x W^T: adds y (R, out) to what is there, from x (R, in).
  virtual void add_linear(const Context& context, const MatrixWeight<T>& weight, const T* x,
                          float* y) = 0;
  // The same backwards: d_normal (R, in) and the weight's gradient, from y_gradient (R, out).
  virtual void linear_backward(const Context& context, const MatrixWeight<T>& weight,
                               const T* y_gradient, const T* x) = 0;

  // kept.heads from kept.attention_normal: projected, queries and keys rotated.
  virtual void project_heads(const Context& context, const MatrixWeight<T>& heads,
                             const BlockKept<T>& kept) = 0;
  // kept.mixed and kept.log_sums from kept.heads.
  virtual void attend(const Context& context, const BlockKept<T>& kept) = 0;
  // d_mixed and the weight's gradient from d_stream_copy.
  virtual void output_backward(const Context& context, const MatrixWeight<T>& output,
                               const BlockKept<T>& kept) = 0;
  // d_heads, before their rotation, from d_mixed.
  virtual void attend_backward(const Context& context, const BlockKept<T>& kept) = 0;

  // kept.gate_up and gated from kept.feed_forward_normal.
  virtual void gate(const Context& context, const MatrixWeight<T>& gate_up,
                    const BlockKept<T>& kept) = 0;
  // d_gate_up, gated once more, and the weight's gradient from d_stream_copy.
  virtual void gate_backward(const Context& context, const MatrixWeight<T>& down,
                             const BlockKept<T>& kept) = 0;

  // Losses of some rows from `logits`, which are overwritten.
  virtual void cross_entropy(const Context& context, const HeadRows& rows,
                             const int64_t* targets) = 0;
  // The same, and `scale` times their gradient in d_logits.
  virtual void cross_entropy_backward(const Context& context, const HeadRows& rows,
                                      const int64_t* targets, float scale) = 0;

  // Sets `values` to 0.
  virtual void clear(float* values, int64_t size) = 0;
};

}  // namespace farstep
