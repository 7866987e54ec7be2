// The fused model's operations on a CPU slice: vector kernels around matrix products, on the
// calling thread's threads.
//
// T is float or BF16. A product that a kernel processes next is computed in pieces of rows, so that
// the kernel finds each piece in the cache. With a fixed number of threads equal calls give equal
// bits.
#pragma once

#include "trainer/kernels/factor.h"
#include "trainer/model/cpu_ops/cpu_attention.h"
#include "trainer/model/fused/arena.h"
#include "trainer/model/fused/fused_ops.h"

namespace farstep {

template <typename T>
class CpuOps : public FusedOps<T> {
 public:
  using Context = PassContext<T>;

  at::Device device() const override { return at::kCPU; }
  int64_t scratch_bytes() const override { return arena_.bytes(); }
  // Returns what begin() takes for a pass on so many threads.
  static int64_t scratch_bytes_of(const LlamaConfig& config, const AttentionShape& shape,
                                  int64_t threads);
  int64_t logit_rows(int64_t rows, int64_t vocabulary) const override;
  void begin(const Context& context, const FusedWeights<T>& weights) override;

  void embed(const Context& context, const float* table, const int64_t* ids, float* x) override;
  void embed_backward(const Context& context, const int64_t* ids, bool add,
                      float* table_gradient) override;
  void normalise(const Context& context, const NormWeight& weight, const float* x, T* y,
                 float* inverse_rms, float* sum) override;
  void normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                          const float* inverse_rms) override;
  void add_linear(const Context& context, const MatrixWeight<T>& weight, const T* x,
                  const float* stream, float* sum) override;
  void linear_backward(const Context& context, const MatrixWeight<T>& weight, const T* y_gradient,
                       const T* x) override;
  void project_heads(const Context& context, const MatrixWeight<T>& heads,
                     const BlockKept<T>& kept) override;
  void attend(const Context& context, const BlockKept<T>& kept) override;
  void output_backward(const Context& context, const MatrixWeight<T>& output,
                       const BlockKept<T>& kept) override;
  void attend_backward(const Context& context, const BlockKept<T>& kept) override;
  void gate(const Context& context, const MatrixWeight<T>& gate_up,
            const BlockKept<T>& kept) override;
  void gate_backward(const Context& context, const MatrixWeight<T>& down,
                     const BlockKept<T>& kept) override;
  void project_head(const Context& context, const MatrixWeight<T>& head,
                    const HeadRows& rows) override;
  void head_backward(const Context& context, const MatrixWeight<T>& head, const HeadRows& rows,
                     bool add) override;
  void cross_entropy(const Context& context, const HeadRows& rows, const int64_t* targets) override;
  void cross_entropy_backward(const Context& context, const HeadRows& rows, const int64_t* targets,
                              float scale) override;
  void clear(float* values, int64_t size) override;

 protected:
  // Return the matrices that a linear layer's products read for its weight, its input (R, in) and
  // the gradient in its output (R, out). A result is valid until the next call of the same
  // function.
  virtual const T* weight_factor(const Context&, const MatrixWeight<T>& weight) {
    return weight.values;
  }
  virtual const T* input_factor(const Context&, const MatrixWeight<T>&, const T* x) { return x; }
  virtual const T* gradient_factor(const Context&, const MatrixWeight<T>&, const T* y_gradient) {
    return y_gradient;
  }

 private:
  struct Scratch {
    float* d_normal = nullptr;    // (R, C), gradient in a norm's output
    float* product = nullptr;     // (piece of rows, max(C, C + 2 G D, 2 F))
    float* d_heads = nullptr;     // (R, C + 2 G D), not rotated back yet
    float* norm_parts = nullptr;  // (threads, C), a norm's weight gradient
    AttentionScratch<T> attention;
  };
  static Scratch cut_scratch(ArenaCutter& cutter, const LlamaConfig& config,
                             const AttentionShape& shape, int64_t threads);

  void multiply(const Context& context, int64_t m, int64_t n, int64_t k, const Factor<T>& a,
                const Factor<T>& b, const Product& c);
  // Computes the weight's gradient from matrices that the functions above returned.
  void weight_gradient(const Context& context, const MatrixWeight<T>& weight, const T* y_gradient,
                       const T* x);

  Arena arena_{at::kCPU};
  Scratch scratch_;
};

}  // namespace farstep
