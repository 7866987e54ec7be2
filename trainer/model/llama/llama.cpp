// The oracle: the model as its papers write it, by LibTorch's autograd. fused_llama computes the
// same faster.
#include "trainer/model/llama/llama.h"

#include <ATen/core/grad_mode.h>

#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/model/llama/llama_layout.h"
#include "trainer/model/llama/project.h"

namespace farstep {

// Leaves are views into the flat vectors, so autograd adds into the flat gradient.
Llama::Llama(const LlamaConfig& config, at::Device device, ComputeType compute)
    : config_(config),
      compute_(compute == ComputeType::kBF16 ? at::kBFloat16 : at::kFloat),
      parameters_(llama_layout(config), device),
      rotary_(rotary_frequencies(config, device)) {
  const auto leaf = [this](const std::string& name) { return parameters_.leaf(name + ".weight"); };
  embedding_ = leaf("model.embed_tokens");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto name = fmt::format("model.layers.{}.", layer);
    blocks_.push_back({.attention_norm = leaf(name + "input_layernorm"),
                       .attention = {.query = leaf(name + "self_attn.q_proj"),
                                     .key = leaf(name + "self_attn.k_proj"),
                                     .value = leaf(name + "self_attn.v_proj"),
                                     .output = leaf(name + "self_attn.o_proj")},
                       .feed_forward_norm = leaf(name + "post_attention_layernorm"),
                       .feed_forward = {.gate = leaf(name + "mlp.gate_proj"),
                                        .up = leaf(name + "mlp.up_proj"),
                                        .down = leaf(name + "mlp.down_proj")}});
  }
  final_norm_ = leaf("model.norm");
  head_ = config.tied_embeddings ? embedding_ : leaf("lm_head");
}

// Only products are in bf16; norms and the residual stream stay fp32.
at::Tensor Llama::normalise(const at::Tensor& x, const at::Tensor& weight) const {
  return at::rms_norm(x, {config_.hidden}, weight, config_.norm_epsilon).to(compute_);
}

at::Tensor Llama::logits(const at::Tensor& inputs, const std::stop_token& stop) {
  FARSTEP_CHECK(inputs.dim() == 2 && inputs.numel() > 0, "token ids are (B, T), both above 0");
  auto x = at::embedding(embedding_, inputs);  // (B, T, C)
  for (const auto& block : blocks_) {
    throw_if_stopped(stop);
    x = x + attention(block.attention, config_.head_size(), rotary_,
                      normalise(x, block.attention_norm));
    x = x + feed_forward(block.feed_forward, normalise(x, block.feed_forward_norm));
  }
  return project(normalise(x, final_norm_), head_).to(at::kFloat);  // (B, T, V)
}

at::Tensor Llama::summed_loss(const at::Tensor& inputs, const at::Tensor& targets,
                              const std::stop_token& stop) {
  return at::cross_entropy_loss(logits(inputs, stop).flatten(0, 1), targets.flatten(),
                                /*weight=*/{}, at::Reduction::Sum);
}

at::Tensor Llama::loss(const at::Tensor& inputs, const at::Tensor& targets) {
  return summed_loss(inputs, targets, {}) / static_cast<double>(targets.numel());
}

at::Tensor Llama::summed_loss(at::TensorList batch, const std::stop_token& stop) {
  const at::NoGradGuard no_grad;
  const auto& tokens = batch.front();
  const int64_t length = tokens.size(1) - 1;  // T
  return summed_loss(tokens.narrow(1, 0, length), tokens.narrow(1, 1, length), stop);
}

at::Tensor Llama::backpropagate(at::TensorList batch, const GradientPass& pass) {
  const auto& tokens = batch.front();
  if (!pass.add) parameters_.gradients().zero_();
  const int64_t length = tokens.size(1) - 1;  // T
  const auto loss =
      summed_loss(tokens.narrow(1, 0, length), tokens.narrow(1, 1, length), pass.stop) * pass.scale;
  loss.backward();
  if (pass.ready) pass.ready(0, parameters_.gradients().numel());
  return loss.detach();
}

}  // namespace farstep
