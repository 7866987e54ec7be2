#include "trainer/model/llama/llama_layout.h"

#include <fmt/format.h>

namespace farstep {

// Hugging Face's order of named_parameters, so that exports and replays by other programs need no
// table. Matrices that the fused step multiplies as one follow each other.
std::vector<ParameterSpec> llama_layout(const LlamaConfig& config) {
  const int64_t hidden = config.hidden, query_width = config.heads * config.head_size();
  const int64_t kv_width = config.kv_heads * config.head_size();
  LayoutBuilder builder;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    builder.weight(name + ".weight", {rows, columns}, config.init_std);
  };
  const auto table = [&](const std::string& name) {
    builder.table(name + ".weight", {config.vocabulary, hidden}, config.init_std);
  };
  const auto norm = [&](const std::string& name) {
    builder.constant(name + ".weight", {hidden}, 1);
  };
  table("model.embed_tokens");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto name = fmt::format("model.layers.{}.", layer);
    matrix(name + "self_attn.q_proj", query_width, hidden);
    matrix(name + "self_attn.k_proj", kv_width, hidden);
    matrix(name + "self_attn.v_proj", kv_width, hidden);
    matrix(name + "self_attn.o_proj", hidden, query_width);
    matrix(name + "mlp.gate_proj", config.intermediate, hidden);
    matrix(name + "mlp.up_proj", config.intermediate, hidden);
    matrix(name + "mlp.down_proj", hidden, config.intermediate);
    norm(name + "input_layernorm");
    norm(name + "post_attention_layernorm");
  }
  norm("model.norm");
  if (!config.tied_embeddings) table("lm_head");
  return builder.finish();
}

}  // namespace farstep
