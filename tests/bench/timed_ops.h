// The operations of a fused pass with a clock around each, to see where a step's time goes.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "trainer/model/fused/fused_ops.h"

namespace farstep {

struct OperationTime {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // of products alone; 0 where they are only a part
};

using OperationTimes = std::map<std::string, OperationTime>;

template <typename T>
class TimedOps : public FusedOps<T> {
 public:
  using Context = PassContext<T>;

  // Adds to `times`, which must outlive this.
  TimedOps(std::unique_ptr<FusedOps<T>> ops, OperationTimes& times)
      : ops_(std::move(ops)), times_(times) {}

  at::Device device() const override { return ops_->device(); }
  int64_t scratch_bytes() const override { return ops_->scratch_bytes(); }
  int64_t logit_rows(int64_t rows, int64_t vocabulary) const override {
    return ops_->logit_rows(rows, vocabulary);
  }
  bool keeps_attention() const override { return ops_->keeps_attention(); }
  void begin(const Context& context, const FusedWeights<T>& weights) override {
    time("beginning", [&] { ops_->begin(context, weights); });
  }

  void embed(const Context& context, const float* table, const int64_t* ids, float* x) override {
    time("embedding", [&] { ops_->embed(context, table, ids, x); });
  }
  void embed_backward(const Context& context, const int64_t* ids, bool add,
                      float* table_gradient) override {
    time("embedding backward", [&] { ops_->embed_backward(context, ids, add, table_gradient); });
  }
  void normalise(const Context& context, const NormWeight& weight, const float* x, T* y,
                 float* inverse_rms, float* sum) override {
    time("norm", [&] { ops_->normalise(context, weight, x, y, inverse_rms, sum); });
  }
  void normalise_backward(const Context& context, const NormWeight& weight, const float* x,
                          const float* inverse_rms) override {
    time("norm backward", [&] { ops_->normalise_backward(context, weight, x, inverse_rms); });
  }
  void project_head(const Context& context, const MatrixWeight<T>& head,
                    const HeadRows& rows) override {
    time(
        "head's products", [&] { ops_->project_head(context, head, rows); },
        flops(rows.count, head));
  }
  void head_backward(const Context& context, const MatrixWeight<T>& head, const HeadRows& rows,
                     bool add) override {
    time(
        "head's products", [&] { ops_->head_backward(context, head, rows, add); },
        2 * flops(rows.count, head));
  }
  void add_linear(const Context& context, const MatrixWeight<T>& weight, const T* x,
                  const float* stream, float* sum) override {
    time(
        "output's and down's products", [&] { ops_->add_linear(context, weight, x, stream, sum); },
        flops(context, weight));
  }
  void linear_backward(const Context& context, const MatrixWeight<T>& weight, const T* y_gradient,
                       const T* x) override {
    time(
        "heads' and gate's products backward",
        [&] { ops_->linear_backward(context, weight, y_gradient, x); }, 2 * flops(context, weight));
  }
  void project_heads(const Context& context, const MatrixWeight<T>& heads,
                     const BlockKept<T>& kept) override {
    time(
        "heads' product and rotation", [&] { ops_->project_heads(context, heads, kept); },
        flops(context, heads));
  }
  void attend(const Context& context, const BlockKept<T>& kept) override {
    time("attention", [&] { ops_->attend(context, kept); });
  }
  const T* mixed(const BlockKept<T>& kept) const override { return ops_->mixed(kept); }
  void finish_gradients() override { ops_->finish_gradients(); }
  void output_backward(const Context& context, const MatrixWeight<T>& output,
                       const BlockKept<T>& kept) override {
    time(
        "output's products backward", [&] { ops_->output_backward(context, output, kept); },
        2 * flops(context, output));
  }
  void attend_backward(const Context& context, const BlockKept<T>& kept) override {
    time("attention and rotation backward", [&] { ops_->attend_backward(context, kept); });
  }
  void gate(const Context& context, const MatrixWeight<T>& gate_up,
            const BlockKept<T>& kept) override {
    time(
        "gate's product and SwiGLU", [&] { ops_->gate(context, gate_up, kept); },
        flops(context, gate_up));
  }
  void gate_backward(const Context& context, const MatrixWeight<T>& down,
                     const BlockKept<T>& kept) override {
    time(
        "down's products and SwiGLU backward", [&] { ops_->gate_backward(context, down, kept); },
        2 * flops(context, down));
  }
  void cross_entropy(const Context& context, const HeadRows& rows,
                     const int64_t* targets) override {
    time("cross-entropy", [&] { ops_->cross_entropy(context, rows, targets); });
  }
  void cross_entropy_backward(const Context& context, const HeadRows& rows, const int64_t* targets,
                              float scale) override {
    time("cross-entropy", [&] { ops_->cross_entropy_backward(context, rows, targets, scale); });
  }
  void clear(float* values, int64_t size) override {
    time("clearing", [&] { ops_->clear(values, size); });
  }

 private:
  static double flops(const Context& context, const MatrixWeight<T>& weight) {
    return flops(context.shape.rows(), weight);
  }
  static double flops(int64_t rows, const MatrixWeight<T>& weight) {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(weight.out * weight.in);
  }

  template <typename Work>
  void time(const std::string& name, const Work& work, double flops = 0) {
    const auto began = std::chrono::steady_clock::now();
    work();
    auto& operation = times_[name];
    operation.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    operation.flops += flops;
    ++operation.calls;
  }

  const std::unique_ptr<FusedOps<T>> ops_;
  OperationTimes& times_;
};

}  // namespace farstep
