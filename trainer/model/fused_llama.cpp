#include "trainer/model/fused_llama.h"

#include <algorithm>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/kernels/convert.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/embedding.h"
#include "trainer/model/matrix_product.h"
#include "trainer/model/parallel_rows.h"

namespace farstep {

// One call's tokens, weights and memory.
template <typename T>
struct FusedLlama<T>::Pass {
  at::Tensor inputs, targets;  // (R) each
  at::Tensor cosines, sines;
  FusedWeights<T> weights;
  FusedBuffers<T> buffers;
  AttentionShape shape;
  RotaryRows rotary;
  GradientPass gradients;

  void ready(int64_t begin, int64_t end) const {
    if (gradients.ready) gradients.ready(begin, end);
  }

  const int64_t* input_ids() const { return inputs.const_data_ptr<int64_t>(); }
  const int64_t* target_ids() const { return targets.const_data_ptr<int64_t>(); }
  BlockContext<T> context(const LlamaConfig& config) const {
    return {config, shape, rotary, buffers, gradients.add};
  }
};

template <typename T>
FusedLlama<T>::FusedLlama(const LlamaConfig& config)
    : config_(config),
      parameters_(config, at::kCPU),
      rotary_(config.head_size(), config.rope_theta, at::kCPU) {}

template <typename T>
auto FusedLlama<T>::begin_pass(const at::Tensor& tokens) -> Pass {
  FARSTEP_CHECK(tokens.dim() == 2 && tokens.size(0) > 0 && tokens.size(1) > 1,
                "token ids are (B, T + 1), B and T above 0");
  const auto [least, most] = at::aminmax(tokens);
  FARSTEP_CHECK(least.item<int64_t>() >= 0 && most.item<int64_t>() < config_.vocabulary,
                "token ids are 0 to {}, not {} to {}", config_.vocabulary - 1,
                least.item<int64_t>(), most.item<int64_t>());
  const int64_t length = tokens.size(1) - 1;
  Pass pass;
  pass.inputs = tokens.narrow(1, 0, length).flatten();
  pass.targets = tokens.narrow(1, 1, length).flatten();
  std::tie(pass.cosines, pass.sines) = rotary_.tables(length);
  pass.weights = fused_weights<T>(parameters_, config_);
  pass.buffers = pool_.buffers(config_, tokens.size(0), length);
  pass.shape = attention_shape(config_, tokens.size(0), length);
  pass.rotary = {.sequence_length = length,
                 .rotated_heads = config_.heads + config_.kv_heads,
                 .other_heads = config_.kv_heads,
                 .head_size = config_.head_size(),
                 .cosines = pass.cosines.template const_data_ptr<float>(),
                 .sines = pass.sines.template const_data_ptr<float>()};
  return pass;
}

template <typename T>
void FusedLlama<T>::forward(const Pass& pass) {
  const auto context = pass.context(config_);
  const auto& blocks = pass.buffers.blocks;
  const int64_t hidden = config_.hidden;
  float* const first = blocks.empty() ? pass.buffers.final_input : blocks[0].attention_input;
  for_rows(pass.shape.rows(), [&](int64_t begin, int64_t end) {
    embed(pass.weights.embedding.values, pass.input_ids() + begin, end - begin, hidden,
          first + begin * hidden);
  });
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    float* const output =
        layer + 1 < blocks.size() ? blocks[layer + 1].attention_input : pass.buffers.final_input;
    block_forward(context, pass.weights.blocks[layer], blocks[layer], output);
  }
  normalise(context, pass.weights.final_norm, pass.buffers.final_input, pass.buffers.final_normal,
            pass.buffers.final_inverse_rms, /*copy=*/nullptr);
}

template <typename T>
void FusedLlama<T>::head(const Pass& pass, bool gradient) {
  const auto& buffers = pass.buffers;
  const auto& weight = pass.weights.head;
  const int64_t rows = pass.shape.rows(), hidden = config_.hidden, vocabulary = config_.vocabulary;
  const int64_t step = logit_rows(rows, vocabulary);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const T* const x = buffers.final_normal + first * hidden;
    multiply(count, vocabulary, hidden, {x, hidden}, {weight.values, hidden, true},
             {buffers.logits, vocabulary});
    for_rows(count, [&](int64_t begin, int64_t end) {
      float* const logits = buffers.logits + begin * vocabulary;
      const int64_t* const targets = pass.target_ids() + first + begin;
      float* const losses = buffers.losses + first + begin;
      if (gradient) {
        cross_entropy(logits, targets, end - begin, vocabulary,
                      static_cast<float>(pass.gradients.scale), losses,
                      buffers.d_logits + begin * vocabulary);
      } else {
        cross_entropy(logits, targets, end - begin, vocabulary, losses);
      }
    });
    if (!gradient) continue;
    multiply(vocabulary, hidden, count, {buffers.d_logits, vocabulary, true}, {x, hidden},
             {weight.gradient, hidden, pass.gradients.add || first > 0});
    multiply(count, hidden, vocabulary, {buffers.d_logits, vocabulary}, {weight.values, hidden},
             {buffers.d_normal + first * hidden, hidden});
  }
}

template <typename T>
void FusedLlama<T>::backward(const Pass& pass) {
  const auto context = pass.context(config_);
  const auto& buffers = pass.buffers;
  const int64_t rows = pass.shape.rows(), hidden = config_.hidden;
  for_rows(rows, [&](int64_t begin, int64_t end) {
    std::fill(buffers.d_stream + begin * hidden, buffers.d_stream + end * hidden, 0.0F);
  });
  normalise_backward(context, pass.weights.final_norm, buffers.final_input,
                     buffers.final_inverse_rms);
  pass.ready(pass.weights.blocks_end, num_parameters(parameters_.layout()));
  for (auto layer = buffers.blocks.size(); layer-- > 0;) {
    const auto& weights = pass.weights.blocks[layer];
    block_backward(context, weights, buffers.blocks[layer]);
    pass.ready(weights.begin, weights.end);
  }
  float* const table = pass.weights.embedding.gradient;
  // A tied table holds the head's gradient by now.
  if (!pass.gradients.add && !config_.tied_embeddings) {
    for_rows(config_.vocabulary, [&](int64_t begin, int64_t end) {
      std::fill(table + begin * hidden, table + end * hidden, 0.0F);
    });
  }
  for_rows(hidden, [&](int64_t begin, int64_t end) {
    embed_backward(buffers.d_stream, pass.input_ids(), rows, hidden, begin, end, table);
  });
  pass.ready(0, config_.vocabulary * hidden);
}

template <typename T>
at::Tensor FusedLlama<T>::backpropagate(const at::Tensor& tokens, const GradientPass& request) {
  auto pass = begin_pass(tokens);
  pass.gradients = request;
  forward(pass);
  head(pass, /*gradient=*/true);
  backward(pass);
  const float* const losses = pass.buffers.losses;
  return at::full({}, request.scale * std::accumulate(losses, losses + pass.shape.rows(), 0.0),
                  at::kFloat);
}

template <typename T>
at::Tensor FusedLlama<T>::summed_loss(const at::Tensor& tokens) {
  const auto pass = begin_pass(tokens);
  forward(pass);
  head(pass, /*gradient=*/false);
  const float* const losses = pass.buffers.losses;
  return at::full({}, std::accumulate(losses, losses + pass.shape.rows(), 0.0), at::kFloat);
}

template class FusedLlama<float>;
template class FusedLlama<BF16>;

}  // namespace farstep
