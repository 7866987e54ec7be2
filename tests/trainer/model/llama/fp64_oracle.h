// The model in fp64 by autograd, from the parts of Llama: what the others are measured against.
#pragma once

#include <map>

#include "trainer/model/llama/attention.h"
#include "trainer/model/llama/feed_forward.h"
#include "trainer/model/llama/llama_layout.h"
#include "trainer/model/parameters/parameters.h"

namespace farstep {

struct OracleResult {
  double loss = 0;       // summed
  at::Tensor gradients;  // flat, fp64
};

// Of flat `values`, for `tokens` (B, T + 1).
inline OracleResult fp64_oracle(const LlamaConfig& config, const at::Tensor& values,
                                const at::Tensor& tokens) {
  const auto flat = values.to(at::kDouble).detach().clone().set_requires_grad(true);
  std::map<std::string, at::Tensor> named;
  for (const auto& spec : llama_layout(config)) {
    named[spec.name] = flat.narrow(0, spec.offset, spec.size()).view(spec.shape);
  }
  const auto weight = [&](const std::string& name) { return named.at(name + ".weight"); };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::rms_norm(x, {config.hidden}, weight(name), config.norm_epsilon);
  };
  RotaryTable rotary(rotary_frequencies(config, at::kCPU));
  const int64_t length = tokens.size(1) - 1;
  auto x = at::embedding(weight("model.embed_tokens"), tokens.narrow(1, 0, length));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto name = fmt::format("model.layers.{}.", layer);
    const AttentionWeights mix{weight(name + "self_attn.q_proj"), weight(name + "self_attn.k_proj"),
                               weight(name + "self_attn.v_proj"),
                               weight(name + "self_attn.o_proj")};
    const FeedForwardWeights feed{weight(name + "mlp.gate_proj"), weight(name + "mlp.up_proj"),
                                  weight(name + "mlp.down_proj")};
    x = x + attention(mix, config.head_size(), rotary, norm(x, name + "input_layernorm"));
    x = x + feed_forward(feed, norm(x, name + "post_attention_layernorm"));
  }
  const auto head = weight(config.tied_embeddings ? "model.embed_tokens" : "lm_head");
  const auto logits = at::linear(norm(x, "model.norm"), head);
  const auto loss =
      at::cross_entropy_loss(logits.flatten(0, 1), tokens.narrow(1, 1, length).flatten(),
                             /*weight=*/{}, at::Reduction::Sum);
  loss.backward();
  return {loss.item<double>(), flat.grad()};
}

}  // namespace farstep
