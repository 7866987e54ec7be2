// What holds for the fused model's operations with FP8 on any device.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/random_model.h"
#include "trainer/model/fused/fp8_layers.h"
#include "trainer/model/fused/fused_llama.h"

namespace farstep {

// Of the layers' sides and rows, all are multiples of 16, some or none.
inline const ModelShape kFp8Shapes[] = {
    {"all layers", {67, 32, 48, 2, 2, 1}, 3, 32},
    {"grouped by three and tied",
     {.vocabulary = 29,
      .hidden = 48,
      .intermediate = 80,
      .layers = 2,
      .heads = 3,
      .kv_heads = 1,
      .tied_embeddings = true},
     2,
     40},
    {"sixteen tokens", {101, 16, 16, 3, 2, 2}, 1, 16},
    {"heads and output alone", {53, 32, 20, 2, 2, 2}, 4, 12},
    {"a tile and a bit", {31, 80, 96, 1, 2, 1}, 2, 72},
    {"heads wider than hidden",
     {.vocabulary = 53,
      .hidden = 32,
      .intermediate = 48,
      .layers = 2,
      .heads = 2,
      .kv_heads = 1,
      .own_head_size = 64},
     2,
     32},
    {"heads narrower than hidden",
     {.vocabulary = 53,
      .hidden = 160,
      .intermediate = 16,
      .layers = 2,
      .heads = 2,
      .kv_heads = 1,
      .own_head_size = 16},
     2,
     32},
};
inline const ModelShape kOtherShapes[] = {
    {"no layer", {53, 24, 20, 2, 3, 1}, 2, 16},
    {"rows that do not fit", {67, 32, 48, 2, 2, 1}, 1, 33},
    {"one token", {67, 32, 48, 2, 2, 1}, 1, 1},
    {"no block", {31, 16, 4, 0, 2, 1}, 2, 8},
};

// What FP8 makes of a matrix, by LibTorch's conversion and a formula of its own.
inline at::Tensor fp8_of(const at::Tensor& x, at::ScalarType type, double largest) {
  const auto exact = x.cpu().to(at::kDouble);
  const double magnitude = exact.abs().max().item<double>();
  const double scale = std::exp2(std::floor(std::log2(largest / magnitude)));
  return (exact * scale).to(at::kFloat).to(type).to(at::kDouble) / scale;
}
inline at::Tensor e4m3_of(const at::Tensor& x) {
  return fp8_of(x, at::kFloat8_e4m3fn, 448);
}
inline at::Tensor e5m2_of(const at::Tensor& x) {
  return fp8_of(x, at::kFloat8_e5m2, 57344);
}

// Every product of the first block's layers, with and without `add`, against fp64 products of
// rounded factors: by way of the operations that make them. `rounding` is the error of what leaves
// them in bf16.
template <typename Ops>
class ProductChecks {
 public:
  ProductChecks(Ops& ops, const ModelShape& model, double tolerance, double rounding)
      : ops_(ops),
        model_(model),
        tolerance_(tolerance),
        rounding_(rounding),
        on_device_(ops.device()),
        parameters_(llama_layout(model.config), ops.device()),
        arena_(ops.device()),
        shape_(attention_shape(model.config, model.sequences, model.length)) {
    randomise(parameters_, fresh_seed());
  }

  void check() {
    const auto& config = model_.config;
    PassContext<BF16> context{
        .config = config,
        .shape = shape_,
        .rotary = {},
        .buffers = fused_buffers<BF16>(arena_, config, {.shape = shape_, .logit_rows = 1})};
    const auto weights = fused_weights<BF16>(parameters_, config);
    const auto& block = weights.blocks[0];
    for (const bool add : {false, true}) {
      context.add = add;
      for (const auto* weight : {&block.output, &block.down}) {
        if (takes_fp8(context, *weight)) check_branch(context, weights, *weight);
      }
      if (takes_fp8(context, block.gate_up)) check_gate(context, weights);
      for (const auto* weight : {&block.heads, &block.gate_up}) {
        if (takes_fp8(context, *weight)) check_backward(context, weights, *weight);
      }
    }
  }

 private:
  at::Tensor random(int64_t columns, double deviation) const {
    return at::randn({shape_.rows(), columns}, on_device_).mul(deviation).to(at::kBFloat16);
  }
  at::Tensor flat(const at::Tensor& all, const MatrixWeight<BF16>& weight) {
    const auto offset = weight.values - bf16(parameters_.bf16_values());
    return all.narrow(0, offset, weight.out * weight.in).view({weight.out, weight.in});
  }
  template <typename T>
  at::Tensor array(T* values, int64_t columns) const {
    const auto type = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
    return at::for_blob(values, {shape_.rows(), columns})
        .options(on_device_.dtype(type))
        .target_device(ops_.device())
        .make_tensor();
  }
  static const BF16* bf16(const at::Tensor& x) {
    return static_cast<const BF16*>(x.const_data_ptr());
  }
  static void near(const at::Tensor& own, const at::Tensor& wanted, double tolerance) {
    CHECK(norm_of(own.cpu().to(at::kDouble) - wanted) < tolerance * norm_of(wanted));
  }

  // As a block ends a branch: the norm of the stream, the product, the norm of the sum.
  void check_branch(const PassContext<BF16>& context, const FusedWeights<BF16>& weights,
                    const MatrixWeight<BF16>& weight) {
    const auto& kept = context.buffers.blocks[0];
    ops_.begin(context, weights);
    auto stream = array(kept.attention_input, weight.out),
         sum = array(kept.feed_forward_input, weight.out);
    stream.normal_(0, 1e-3);
    const auto x = random(weight.in, 3);
    ops_.normalise(context, weights.blocks[0].attention_norm, kept.attention_input,
                   kept.attention_normal, kept.attention_inverse_rms, kept.feed_forward_input);
    ops_.add_linear(context, weight, bf16(x), kept.attention_input, kept.feed_forward_input);
    ops_.normalise(context, weights.blocks[0].feed_forward_norm, kept.feed_forward_input,
                   kept.feed_forward_normal, kept.feed_forward_inverse_rms, nullptr);
    const auto product = at::mm(e4m3_of(x), e4m3_of(flat(parameters_.bf16_values(), weight)).t());
    near(sum, stream.cpu().to(at::kDouble) + product, rounding_);
  }

  void check_gate(const PassContext<BF16>& context, const FusedWeights<BF16>& weights) {
    const auto& kept = context.buffers.blocks[0];
    const auto& weight = weights.blocks[0].gate_up;
    ops_.begin(context, weights);
    auto normal = array(kept.feed_forward_normal, weight.in);
    normal.copy_(random(weight.in, 3));
    ops_.gate(context, weight, kept);
    near(array(kept.gate_up, weight.out),
         at::mm(e4m3_of(normal), e4m3_of(flat(parameters_.bf16_values(), weight)).t()), 4e-3);
  }

  // The gradient in a norm's output is seen as it goes on through a norm whose rows do not count.
  void check_backward(const PassContext<BF16>& context, const FusedWeights<BF16>& weights,
                      const MatrixWeight<BF16>& weight) {
    const auto& kept = context.buffers.blocks[0];
    ops_.begin(context, weights);
    const auto x = random(weight.in, 3), y_gradient = random(weight.out, 1e-5);
    auto gradient = flat(parameters_.gradients(), weight);
    gradient.fill_(context.add ? 0 : std::nan(""));
    ops_.linear_backward(context, weight, bf16(y_gradient), bf16(x));
    ops_.finish_gradients();
    near(gradient, at::mm(e5m2_of(y_gradient).t(), e4m3_of(x)), tolerance_);

    auto zeros = array(kept.attention_input, weight.in),
         d_stream = array(context.buffers.d_stream, weight.in);
    auto inverse = array(kept.attention_inverse_rms, 1);
    auto ones = at::ones({weight.in}, on_device_), unused = at::zeros_like(ones);
    zeros.zero_();
    d_stream.zero_();
    inverse.fill_(1);
    const NormWeight norm{ones.const_data_ptr<float>(), unused.mutable_data_ptr<float>()};
    ops_.normalise_backward(context, norm, kept.attention_input, kept.attention_inverse_rms);
    near(d_stream, at::mm(e5m2_of(y_gradient), e4m3_of(flat(parameters_.bf16_values(), weight))),
         rounding_);
  }

  Ops& ops_;
  const ModelShape& model_;
  const double tolerance_, rounding_;
  const at::TensorOptions on_device_;
  Parameters parameters_;
  Arena arena_;
  const AttentionShape shape_;
};

// The relative error of the whole gradient against fp64: the median over several draws of weights
// and tokens, more of them where a few values decide.
inline double gradient_error(FusedLlama<BF16>& model, const ModelShape& shape, at::Device device) {
  std::vector<double> errors(shape.sequences * shape.length < 40 ? 15 : 5);
  for (double& error : errors) {
    randomise(model.parameters(), fresh_seed());
    const auto tokens = random_tokens(shape.config, shape.sequences, shape.length);
    const auto wanted = fp64_oracle(shape.config, rounded_matrices(model.parameters()), tokens);
    const auto loss = model.set_gradients(tokens.to(device), 1.0).template item<double>();
    CHECK(loss == Approx(wanted.loss).epsilon(0.02));
    error = norm_of(model.parameters().gradients().cpu() - wanted.gradients) /
            norm_of(wanted.gradients);
  }
  std::ranges::nth_element(errors, errors.begin() + std::ssize(errors) / 2);
  return errors[errors.size() / 2];
}

}  // namespace farstep
