// The fused model's operations on a GPU in bf16: own kernels around cuBLAS's products and flash
// attention.
//
// Everything is work for the calling thread's current stream, and nothing waits for it. What lies
// between a product and a kernel is bf16, where a CPU keeps fp32 in its cache. Equal calls give
// equal bits if LibTorch was asked for deterministic algorithms. Only in builds with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "trainer/model/arena.h"
#include "trainer/model/fused_ops.h"
#include "trainer/model/gpu_library.h"

namespace farstep {

class GpuOps : public FusedOps<BF16> {
 public:
  // Of an open GPU that make_gpu_ops has found fit.
  explicit GpuOps(at::Device device) : arena_(device), device_(device) {}

  at::Device device() const override { return device_; }
  int64_t scratch_bytes() const override { return arena_.bytes(); }
  int64_t logit_rows(int64_t rows, int64_t vocabulary) const override;
  void begin(const Context& context, const FusedWeights<BF16>& weights) override;

  void embed(const Context& context, const float* table, const int64_t* ids, float* x) override;
  void embed_backward(const Context& context, const int64_t* ids, bool add,
                      float* table_gradient) override;
  void normalise(const Context& context, const NormWeight& weight, const float* x, BF16* y,
                 float* inverse_rms, float* copy) override;
  void normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                          const float* inverse_rms) override;
  void multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                const Product& c) override;
  void add_linear(const Context& context, const MatrixWeight<BF16>& weight, const BF16* x,
                  float* y) override;
  void linear_backward(const Context& context, const MatrixWeight<BF16>& weight,
                       const BF16* y_gradient, const BF16* x) override;
  void project_heads(const Context& context, const MatrixWeight<BF16>& heads,
                     const BlockKept<BF16>& kept) override;
  void attend(const Context& context, const BlockKept<BF16>& kept) override;
  void output_backward(const Context& context, const MatrixWeight<BF16>& output,
                       const BlockKept<BF16>& kept) override;
  void attend_backward(const Context& context, const BlockKept<BF16>& kept) override;
  void gate(const Context& context, const MatrixWeight<BF16>& gate_up,
            const BlockKept<BF16>& kept) override;
  void gate_backward(const Context& context, const MatrixWeight<BF16>& down,
                     const BlockKept<BF16>& kept) override;
  void cross_entropy(const Context& context, const HeadRows& rows, const int64_t* targets) override;
  void cross_entropy_backward(const Context& context, const HeadRows& rows, const int64_t* targets,
                              float scale) override;
  void clear(float* values, int64_t size) override;

 protected:
  // The products of a linear layer: x (R, in) forward,
  virtual void forward_product(const Context& context, const MatrixWeight<BF16>& weight,
                               const BF16* x, const GpuProduct& y);
  // backward the gradient in x, and after that, from the same y_gradient (R, out), the weight's.
  virtual void input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                      const BF16* y_gradient, const GpuProduct& x_gradient);
  virtual void weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                       const BF16* y_gradient, const BF16* x);

  cudaStream_t stream() const { return stream_; }  // of the pass

 private:
  struct Scratch {
    float* norm_parts = nullptr;     // (rms_norm_parts(R), C)
    int32_t* token_order = nullptr;  // (R)
  };

  Arena arena_;
  Scratch scratch_;
  const at::Device device_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace farstep
