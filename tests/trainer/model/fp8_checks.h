// What holds for the fused model's operations with FP8 on any device.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/model/random_model.h"
#include "trainer/model/fp8_layers.h"
#include "trainer/model/fused_llama.h"

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

// Every product of the first block's layers that stands alone, with and without `add`, against fp64
// products of rounded factors.
inline void check_products(FusedOps<BF16>& ops, const ModelShape& model, double tolerance) {
  const auto& config = model.config;
  const auto on_device = at::TensorOptions(ops.device());
  Parameters parameters(config, ops.device());
  randomise(parameters, fresh_seed());
  Arena arena(ops.device());
  const auto shape = attention_shape(config, model.sequences, model.length);
  PassContext<BF16> context{
      .config = config,
      .shape = shape,
      .rotary = {},
      .buffers = fused_buffers<BF16>(arena, config, {.shape = shape, .logit_rows = 1})};
  const auto weights = fused_weights<BF16>(parameters, config);
  const auto random = [&](int64_t columns, double deviation) {
    return at::randn({shape.rows(), columns}, on_device).mul(deviation).to(at::kBFloat16);
  };
  const auto bf16 = [](const at::Tensor& x) {
    return static_cast<const BF16*>(x.const_data_ptr());
  };
  const auto near = [&](const at::Tensor& own, const at::Tensor& wanted) {
    CHECK(norm_of(own.cpu() - wanted) < tolerance * norm_of(wanted));
  };
  for (const bool add : {false, true}) {
    context.add = add;
    ops.begin(context, weights);
    for (const auto& weight : linear_layers(weights.blocks[0])) {
      if (!takes_fp8(context, weight)) continue;
      INFO(weight.number);
      const auto offset = weight.values - bf16(parameters.bf16_values());
      const auto flat = [&](const at::Tensor& all) {
        return all.narrow(0, offset, weight.out * weight.in).view({weight.out, weight.in});
      };
      const auto matrix = flat(parameters.bf16_values());
      const auto x = random(weight.in, 3), y_gradient = random(weight.out, 1e-5);
      auto y = at::zeros({shape.rows(), weight.out}, on_device);
      ops.add_linear(context, weight, bf16(x), y.mutable_data_ptr<float>());
      const auto once = at::mm(e4m3_of(x), e4m3_of(matrix).t());
      near(y, once);
      ops.add_linear(context, weight, bf16(x), y.mutable_data_ptr<float>());
      near(y, 2 * once);
      if (weight.in != config.hidden) continue;  // d_normal is as wide
      auto gradient = flat(parameters.gradients());
      gradient.fill_(add ? 0 : std::nan(""));
      ops.linear_backward(context, weight, bf16(y_gradient), bf16(x));
      near(gradient, at::mm(e5m2_of(y_gradient).t(), e4m3_of(x)));
      const auto d_normal = at::for_blob(context.buffers.d_normal, {shape.rows(), weight.in})
                                .options(on_device.dtype(at::kFloat))
                                .target_device(ops.device())
                                .make_tensor();
      near(d_normal, at::mm(e5m2_of(y_gradient), e4m3_of(matrix)));
    }
  }
}

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
