// A token's time is that of reading all weights once, so the other operations must be few: products
// of one input are joined, and all heads that share keys are one product.
#include "trainer/model/llama/decoder.h"

#include <ATen/core/grad_mode.h>

#include "trainer/base/error.h"

namespace farstep {

Decoder::Decoder(Llama& model, ComputeType compute, int64_t capacity)
    : config_(model.config()),
      compute_(compute == ComputeType::kBF16 ? at::kBFloat16 : at::kFloat),
      capacity_(capacity),
      rotary_(rotary_frequencies(config_, model.device())) {
  FARSTEP_CHECK(capacity > 0, "a decoder reads at least one token");
  const at::NoGradGuard no_grad;
  const auto leaf = [&model](const std::string& name) {
    return model.parameters().leaf(name + ".weight").detach();
  };
  embedding_ = leaf("model.embed_tokens");
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    const auto name = fmt::format("model.layers.{}.", layer);
    const auto matrix = [&](const char* part) { return leaf(name + part).to(compute_); };
    const auto cache = at::empty({config_.kv_heads, capacity, config_.head_size()},
                                 at::device(model.device()).dtype(compute_));
    blocks_.push_back({.attention_norm = leaf(name + "input_layernorm"),
                       .heads = at::cat({matrix("self_attn.q_proj"), matrix("self_attn.k_proj"),
                                         matrix("self_attn.v_proj")}),
                       .output = matrix("self_attn.o_proj"),
                       .feed_forward_norm = leaf(name + "post_attention_layernorm"),
                       .gate_up = at::cat({matrix("mlp.gate_proj"), matrix("mlp.up_proj")}),
                       .down = matrix("mlp.down_proj"),
                       .keys = cache,
                       .values = at::empty_like(cache)});
  }
  final_norm_ = leaf("model.norm");
  head_ = (config_.tied_embeddings ? embedding_ : leaf("lm_head")).to(compute_);
}

int64_t Decoder::bytes_for(const LlamaConfig& config, ComputeType compute, int64_t capacity) {
  const int64_t width = config.hidden, keys = config.kv_heads * config.head_size();
  const int64_t joined = (config.heads * config.head_size() + 2 * keys + 2 * config.intermediate) *
                         width;  // query, key and value; gate and up
  const int64_t others = (config.heads * config.head_size() + config.intermediate) * width;
  const int64_t cached = 2 * keys * capacity;
  if (compute != ComputeType::kBF16) {
    return static_cast<int64_t>(sizeof(float)) * config.layers * (joined + cached);
  }
  return static_cast<int64_t>(sizeof(BF16)) *
         (config.layers * (joined + others + cached) + config.vocabulary * width);
}

at::Tensor Decoder::normalise(const at::Tensor& x, const at::Tensor& weight) const {
  return at::rms_norm(x, {config_.hidden}, weight, config_.norm_epsilon).to(compute_);
}

// x and the result are (T, C).
at::Tensor Decoder::attend(Block& block, const at::Tensor& x) {
  const int64_t count = x.size(0), end = length_ + count;
  const int64_t heads = config_.heads, groups = config_.kv_heads, size = config_.head_size();
  // (T, H + 2 G, D) -> (1, H + 2 G, T, D)
  const auto all =
      at::linear(x, block.heads).view({1, count, heads + 2 * groups, size}).transpose(1, 2);
  const auto rotated = rotary_.rotate(all.narrow(1, 0, heads + groups), length_);
  block.keys.narrow(1, length_, count).copy_(rotated[0].narrow(0, heads, groups));
  block.values.narrow(1, length_, count).copy_(all[0].narrow(0, heads + groups, groups));
  const auto keys = block.keys.narrow(1, 0, end).unsqueeze(0);  // (1, G, L, D)
  const auto values = block.values.narrow(1, 0, end).unsqueeze(0);
  const auto query = rotated.narrow(1, 0, heads);
  if (count == 1) {
    // The query heads of a group see the same keys, all of them: they are its rows, as positions
    // would be.
    const auto mixed = at::scaled_dot_product_attention(
        query.reshape({1, groups, heads / groups, size}), keys, values);
    return at::linear(mixed.reshape({1, heads * size}), block.output);
  }
  // Position t sees those up to length_ + t. LibTorch's own causal mask begins at the first key.
  const auto mask = length_ == 0
                        ? std::optional<at::Tensor>{}
                        : at::ones({count, end}, x.options().dtype(at::kBool)).tril(length_);
  const auto mixed = at::scaled_dot_product_attention(
      query, keys.repeat_interleave(heads / groups, 1), values.repeat_interleave(heads / groups, 1),
      mask, /*dropout_p=*/0.0,
      /*is_causal=*/!mask.has_value());
  return at::linear(mixed[0].transpose(0, 1).reshape({count, heads * size}), block.output);
}

at::Tensor Decoder::feed_forward(const Block& block, const at::Tensor& x) const {
  const auto gate_up = at::linear(x, block.gate_up);  // (T, 2 F)
  const auto gate = gate_up.narrow(1, 0, config_.intermediate);
  const auto up = gate_up.narrow(1, config_.intermediate, config_.intermediate);
  return at::linear(at::silu(gate).mul_(up), block.down);
}

at::Tensor Decoder::read(const at::Tensor& ids) {
  FARSTEP_CHECK(ids.dim() == 1 && ids.size(0) > 0, "token ids are (T), T above 0");
  FARSTEP_CHECK(ids.size(0) <= capacity_ - length_, "more tokens than a decoder has room for");
  const at::NoGradGuard no_grad;
  auto x = at::embedding(embedding_, ids.to(device()));  // (T, C)
  for (auto& block : blocks_) {
    x += attend(block, normalise(x, block.attention_norm));
    x += feed_forward(block, normalise(x, block.feed_forward_norm));
  }
  length_ += ids.size(0);
  return at::linear(normalise(x[-1], final_norm_), head_).to(at::kFloat);
}

}  // namespace farstep
