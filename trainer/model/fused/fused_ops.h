// The operations of a pass of the fused model on one kind of device.
//
// FusedLlama calls them in one order for all devices. Pointers are to the device's memory. Arrays
// are those of fused_buffers.h and fused_weights.h, with all R = B T rows unless stated otherwise.
// On a GPU an operation is complete when the current stream reaches it. On a CPU an operation
// throws Stopped soon after its context's stop is requested. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <stop_token>

#include "trainer/kernels/rotary.h"
#include "trainer/model/fused/fused_buffers.h"
#include "trainer/model/fused/fused_weights.h"

namespace farstep {

// The data that all operations of one pass share.
template <typename T>
struct PassContext {
  const LlamaConfig& config;
  AttentionShape shape;
  RotaryRows rotary;
  FusedBuffers<T> buffers;
  bool add = false;  // add to the present gradients instead of replacing them
  std::stop_token stop = {};
};

// A range of rows of the head.
struct HeadRows {
  int64_t first = 0, count = 0;
};

template <typename T>
class FusedOps {
 public:
  using Context = PassContext<T>;

  virtual ~FusedOps() = default;

  virtual at::Device device() const = 0;
  // Returns the bytes of the operations' own memory, besides the buffers.
  virtual int64_t scratch_bytes() const = 0;
  // Returns how many of `rows` rows have their logits in memory at the same time.
  virtual int64_t logit_rows(int64_t rows, int64_t vocabulary) const = 0;
  // Whether the operations keep attention's results; a block's `mixed` and `log_sums` are null
  // then.
  virtual bool keeps_attention() const { return false; }
  // Whether gate_backward() reads the block's own `gated`. Otherwise it recomputes it, and all
  // blocks have one.
  virtual bool reads_gated() const { return false; }
  // Must be called before the operations of a pass with these weights. Allocates their own memory.
  virtual void begin(const Context& context, const FusedWeights<T>& weights) = 0;

  // Writes to x (R, C) the rows of table (V, C) that the ids (R) select.
  virtual void embed(const Context& context, const float* table, const int64_t* ids, float* x) = 0;
  // Computes the gradient of table from d_stream; adds it to the present one if `add`.
  virtual void embed_backward(const Context& context, const int64_t* ids, bool add,
                              float* table_gradient) = 0;

  // Writes y (R, C), the RMSNorm of x (R, C). `sum`, unless null, is the array to which the next
  // add_linear() adds its product; operations whose products add in place copy x there.
  virtual void normalise(const Context& context, const NormWeight& weight, const float* x, T* y,
                         float* inverse_rms, float* sum) = 0;
  // Computes a norm's backward from the gradient in its output, which the product before has
  // written. Adds the gradient in its input to d_stream, writes that as the rounded gradient too,
  // and computes the weight's gradient.
  virtual void normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                                  const float* inverse_rms) = 0;

  // Writes kept.heads from kept.attention_normal: projects, and rotates queries and keys.
  virtual void project_heads(const Context& context, const MatrixWeight<T>& heads,
                             const BlockKept<T>& kept) = 0;
  // Writes the block's mixed values (R, H D) from kept.heads, and log-sums for backward.
  virtual void attend(const Context& context, const BlockKept<T>& kept) = 0;
  virtual const T* mixed(const BlockKept<T>& kept) const { return kept.mixed; }
  // Writes kept.gate_up and kept.gated from kept.feed_forward_normal.
  virtual void gate(const Context& context, const MatrixWeight<T>& gate_up,
                    const BlockKept<T>& kept) = 0;
  // Computes a linear layer at the end of a branch: sum (R, C) = stream (R, C) + x W^T, for
  // x (R, in). The normalise() of `sum` must come next; `sum` is complete after that.
  virtual void add_linear(const Context& context, const MatrixWeight<T>& weight, const T* x,
                          const float* stream, float* sum) = 0;

  // Computes the backward of a linear layer after a norm: the gradient in its input and the
  // weight's gradient, from y_gradient (R, out) and x (R, C).
  virtual void linear_backward(const Context& context, const MatrixWeight<T>& weight,
                               const T* y_gradient, const T* x) = 0;
  // Computes d_mixed and the weight's gradient from the rounded gradient.
  virtual void output_backward(const Context& context, const MatrixWeight<T>& output,
                               const BlockKept<T>& kept) = 0;
  // Computes d_heads, rotated back, from d_mixed.
  virtual void attend_backward(const Context& context, const BlockKept<T>& kept) = 0;
  // Computes d_gate_up and the weight's gradient from the rounded gradient.
  virtual void gate_backward(const Context& context, const MatrixWeight<T>& down,
                             const BlockKept<T>& kept) = 0;
  // Completes gradients of matrices that run beside other operations: they are there when the
  // device has reached this point.
  virtual void finish_gradients() {}

  // Computes `logits` of some rows from final_normal.
  virtual void project_head(const Context& context, const MatrixWeight<T>& head,
                            const HeadRows& rows) = 0;
  // Computes from the rows' d_logits the gradient in final_normal, for the norm's backward, and the
  // weight's gradient; adds the latter to the present one if `add`.
  virtual void head_backward(const Context& context, const MatrixWeight<T>& head,
                             const HeadRows& rows, bool add) = 0;
  // Computes the losses of some rows from `logits`, which it overwrites.
  virtual void cross_entropy(const Context& context, const HeadRows& rows,
                             const int64_t* targets) = 0;
  // Does the same, and writes `scale` times their gradient to d_logits.
  virtual void cross_entropy_backward(const Context& context, const HeadRows& rows,
                                      const int64_t* targets, float scale) = 0;

  // Sets `values` to 0.
  virtual void clear(float* values, int64_t size) = 0;
};

}  // namespace farstep
