// The fused model's operations on a GPU in bf16: kernels of this project around cuBLAS's products
// and the attention of LibTorch's libraries.
//
// All work goes to the calling thread's current stream, and nothing waits for it. The gradients of
// matrices run beside it on a second stream (forked_stream.h). Values between a product and a
// kernel are bf16, where a CPU has fp32 in its cache; so are a branch's addition to the residual
// stream and the gradient in a norm's output. Equal calls give equal bits if LibTorch is
// deterministic. Only in builds with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "trainer/kernels/gpu/embedding.h"
#include "trainer/model/fused/arena.h"
#include "trainer/model/fused/fused_ops.h"
#include "trainer/model/gpu_ops/forked_stream.h"
#include "trainer/model/gpu_ops/gpu_library.h"
#include "trainer/model/gpu_ops/gpu_products.h"

namespace farstep {

class GpuOps : public FusedOps<BF16> {
 public:
  // `device` must be an open GPU that make_gpu_ops() has accepted.
  explicit GpuOps(at::Device device);

  at::Device device() const override { return device_; }
  int64_t scratch_bytes() const override { return arena_.bytes(); }
  int64_t logit_rows(int64_t rows, int64_t vocabulary) const override;
  bool keeps_attention() const override { return true; }
  bool reads_gated() const override { return true; }
  void begin(const Context& context, const FusedWeights<BF16>& weights) override;

  void embed(const Context& context, const float* table, const int64_t* ids, float* x) override;
  void embed_backward(const Context& context, const int64_t* ids, bool add,
                      float* table_gradient) override;
  void normalise(const Context& context, const NormWeight& weight, const float* x, BF16* y,
                 float* inverse_rms, float* sum) override;
  void normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                          const float* inverse_rms) override;
  void add_linear(const Context& context, const MatrixWeight<BF16>& weight, const BF16* x,
                  const float* stream, float* sum) override;
  void linear_backward(const Context& context, const MatrixWeight<BF16>& weight,
                       const BF16* y_gradient, const BF16* x) override;
  void project_heads(const Context& context, const MatrixWeight<BF16>& heads,
                     const BlockKept<BF16>& kept) override;
  void attend(const Context& context, const BlockKept<BF16>& kept) override;
  const BF16* mixed(const BlockKept<BF16>& kept) const override;
  void output_backward(const Context& context, const MatrixWeight<BF16>& output,
                       const BlockKept<BF16>& kept) override;
  void attend_backward(const Context& context, const BlockKept<BF16>& kept) override;
  void gate(const Context& context, const MatrixWeight<BF16>& gate_up,
            const BlockKept<BF16>& kept) override;
  void gate_backward(const Context& context, const MatrixWeight<BF16>& down,
                     const BlockKept<BF16>& kept) override;
  void finish_gradients() override;
  void project_head(const Context& context, const MatrixWeight<BF16>& head,
                    const HeadRows& rows) override;
  void head_backward(const Context& context, const MatrixWeight<BF16>& head, const HeadRows& rows,
                     bool add) override;
  void cross_entropy(const Context& context, const HeadRows& rows, const int64_t* targets) override;
  void cross_entropy_backward(const Context& context, const HeadRows& rows, const int64_t* targets,
                              float scale) override;
  void clear(float* values, int64_t size) override;

 protected:
  // Computes a linear layer from x (R, in).
  virtual void forward_product(const Context& context, const MatrixWeight<BF16>& weight,
                               const BF16* x, const GpuProduct& y);
  // Prepares the backward products of a layer for y_gradient (R, out); comes before them.
  virtual void take_gradient(const Context&, const MatrixWeight<BF16>&, const BF16*) {}
  // Computes the gradient in x; weight_gradient_product() computes the weight's, on the fork's
  // stream.
  virtual void input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                      const BF16* y_gradient, const GpuProduct& x_gradient);
  virtual void weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                       const BF16* y_gradient, const BF16* x, cudaStream_t stream);
  // Returns an array of the object itself that weight_gradient_product() reads, if any.
  virtual const void* gradient_copy() const { return nullptr; }

  // Return where kernels that write the input of that linear layer, or the gradient in its output,
  // store its largest magnitude; null if it is not needed.
  virtual uint32_t* input_largest(int64_t /*layer*/) { return nullptr; }
  virtual uint32_t* gradient_largest(int64_t /*layer*/) { return nullptr; }

  cudaStream_t stream() const { return stream_; }  // of the pass
  ForkedStream& fork() { return fork_; }
  GpuProducts& products() { return products_; }

 private:
  struct Scratch {
    BF16* branch = nullptr;         // (R, C), added to the stream by the next norm
    BF16* d_normal = nullptr;       // (R, C), gradient in a norm's output
    BF16* d_gated = nullptr;        // (R, F), gradient in SwiGLU's output
    BF16* d_stream_copy = nullptr;  // (R, C), the rounded gradient after every other norm
    float* norm_parts = nullptr;    // (rms_norm_parts(R), C)
    EmbedRoom embedding;
  };
  // A sum of a stream and the branch, which add_linear() leaves to the next norm.
  struct Sum {
    const float* stream = nullptr;
    float* sum = nullptr;
  };

  void fork_weight_gradient(const Context& context, const MatrixWeight<BF16>& weight,
                            const BF16* y_gradient, const BF16* x);

  Arena arena_;
  Scratch scratch_;
  ForkedStream fork_;
  GpuProducts products_;
  std::vector<AttentionResult> attention_;  // by BlockKept::place
  Sum waiting_;
  const BF16* rounded_gradient_ = nullptr;  // of the residual stream: the last norm's copy
  const at::Device device_;
  const int64_t most_logit_bytes_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace farstep
