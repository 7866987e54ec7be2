#include "trainer/model/parameter_layout.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

class LayoutBuilder {
 public:
  void matrix(const std::string& name, int64_t rows, int64_t columns) {
    add(name, {rows, columns}, true);
  }
  void norm(const std::string& name, int64_t size) { add(name, {size}, false); }
  std::vector<ParameterSpec> finish() { return std::move(layout_); }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, bool decays) {
    const int64_t offset = layout_.empty() ? 0 : layout_.back().end();
    layout_.push_back({name + ".weight", std::move(shape), offset, decays});
  }

  std::vector<ParameterSpec> layout_;
};

}  // namespace

std::vector<ParameterSpec> parameter_layout(const LlamaConfig& config) {
  const int64_t hidden = config.hidden;
  const int64_t kv_width = config.kv_heads * config.head_size();
  LayoutBuilder builder;
  builder.matrix("model.embed_tokens", config.vocabulary, hidden);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto name = fmt::format("model.layers.{}.", layer);
    builder.matrix(name + "self_attn.q_proj", hidden, hidden);
    builder.matrix(name + "self_attn.k_proj", kv_width, hidden);
    builder.matrix(name + "self_attn.v_proj", kv_width, hidden);
    builder.matrix(name + "self_attn.o_proj", hidden, hidden);
    builder.matrix(name + "mlp.gate_proj", config.intermediate, hidden);
    builder.matrix(name + "mlp.up_proj", config.intermediate, hidden);
    builder.matrix(name + "mlp.down_proj", hidden, config.intermediate);
    builder.norm(name + "input_layernorm", hidden);
    builder.norm(name + "post_attention_layernorm", hidden);
  }
  builder.norm("model.norm", hidden);
  if (!config.tied_embeddings) builder.matrix("lm_head", config.vocabulary, hidden);
  return builder.finish();
}

int64_t num_parameters(const std::vector<ParameterSpec>& layout) {
  return layout.empty() ? 0 : layout.back().end();
}

const std::string& parameter_at(const std::vector<ParameterSpec>& layout, int64_t index) {
  const auto found =
      std::upper_bound(layout.begin(), layout.end(), index,
                       [](int64_t wanted, const auto& spec) { return wanted < spec.end(); });
  FARSTEP_CHECK(index >= 0 && found != layout.end(), "no parameter has element {}", index);
  return found->name;
}

NamedBuffers named_parameters(const std::vector<ParameterSpec>& layout, std::span<float> flat) {
  FARSTEP_CHECK(static_cast<int64_t>(flat.size()) == num_parameters(layout),
                "{} values for {} parameters", flat.size(), num_parameters(layout));
  NamedBuffers buffers;
  for (const auto& spec : layout) {
    const auto values =
        flat.subspan(static_cast<std::size_t>(spec.offset), static_cast<std::size_t>(spec.size()));
    buffers.push_back({spec.name, DType::kF32, spec.shape, std::as_writable_bytes(values)});
  }
  return buffers;
}

}  // namespace farstep
