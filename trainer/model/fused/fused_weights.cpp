#include "trainer/model/fused/fused_weights.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

template <typename T>
const T* values_of(Parameters& parameters);
template <>
const float* values_of<float>(Parameters& parameters) {
  return parameters.values().const_data_ptr<float>();
}
template <>
const BF16* values_of<BF16>(Parameters& parameters) {
  return static_cast<const BF16*>(parameters.bf16_values().const_data_ptr());
}

}  // namespace

template <typename T>
FusedWeights<T> fused_weights(Parameters& parameters, const LlamaConfig& config) {
  const T* const values = values_of<T>(parameters);
  const auto* const exact = parameters.values().const_data_ptr<float>();
  auto* const gradients = parameters.gradients().template mutable_data_ptr<float>();
  const auto offset = [&](const std::string& name) {
    const auto found =
        std::ranges::find(parameters.layout(), name + ".weight", &ParameterSpec::name);
    FARSTEP_CHECK(found != parameters.layout().end(), "no parameter is called '{}'", name);
    return found->offset;
  };
  const auto matrix = [&](const std::string& name, int64_t out, int64_t in, int64_t number = -1) {
    return MatrixWeight<T>{values + offset(name), gradients + offset(name), out, in, number};
  };
  const auto norm = [&](const std::string& name, int64_t after, int64_t before) {
    return NormWeight{exact + offset(name), gradients + offset(name), after, before};
  };
  const int64_t hidden = config.hidden, width = config.intermediate;
  const int64_t mixed = config.heads * config.head_size();
  const int64_t heads = mixed + 2 * config.kv_heads * config.head_size();
  FusedWeights<T> weights;
  const int64_t embedding = offset("model.embed_tokens");
  // The embedding is read in fp32 even with bf16 products: rows are copied, not multiplied.
  weights.embedding = {exact + embedding, gradients + embedding, config.vocabulary, hidden};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto name = fmt::format("model.layers.{}.", layer);
    // Adjacent matrices of the layout form one: queries, keys and values; gate and up.
    weights.blocks.push_back(
        {.attention_norm = norm(name + "input_layernorm", 4 * layer - 1, 4 * layer),
         .heads = matrix(name + "self_attn.q_proj", heads, hidden, 4 * layer),
         .output = matrix(name + "self_attn.o_proj", hidden, mixed, 4 * layer + 1),
         .feed_forward_norm = norm(name + "post_attention_layernorm", 4 * layer + 1, 4 * layer + 2),
         .gate_up = matrix(name + "mlp.gate_proj", 2 * width, hidden, 4 * layer + 2),
         .down = matrix(name + "mlp.down_proj", hidden, width, 4 * layer + 3),
         .begin = offset(name + "self_attn.q_proj"),
         .end = offset(name + "post_attention_layernorm") + hidden});
  }
  weights.blocks_end = offset("model.norm");
  weights.final_norm = norm("model.norm", 4 * config.layers - 1, -1);
  weights.head =
      matrix(config.tied_embeddings ? "model.embed_tokens" : "lm_head", config.vocabulary, hidden);
  // LibTorch's counter of changes; whoever changes the values raises it.
  weights.version = parameters.values()._version();
  return weights;
}

template FusedWeights<float> fused_weights(Parameters&, const LlamaConfig&);
template FusedWeights<BF16> fused_weights(Parameters&, const LlamaConfig&);

}  // namespace farstep
