#include "trainer/model/fused/fused_llama.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/model/fused/fused_block.h"
#include "trainer/model/llama/llama_layout.h"

namespace farstep {

namespace {

void require_batch(const at::Tensor& tokens, int64_t vocabulary) {
  FARSTEP_CHECK(tokens.dim() == 2 && tokens.size(0) > 0 && tokens.size(1) > 1,
                "token ids are (B, T + 1), B and T above 0");
  if (!tokens.is_cpu()) return;  // reading them would wait for the device
  const auto [least, most] = at::aminmax(tokens);
  FARSTEP_CHECK(least.item<int64_t>() >= 0 && most.item<int64_t>() < vocabulary,
                "token ids are 0 to {}, not {} to {}", vocabulary - 1, least.item<int64_t>(),
                most.item<int64_t>());
}

RotaryRows rotary_rows(const AttentionShape& shape, const at::Tensor& cosines,
                       const at::Tensor& sines) {
  return {.sequence_length = shape.length,
          .rotated_heads = shape.heads + shape.kv_heads,
          .other_heads = shape.kv_heads,
          .head_size = shape.head_size,
          .cosines = cosines.const_data_ptr<float>(),
          .sines = sines.const_data_ptr<float>()};
}

}  // namespace

// The tokens, weights and memory of one call.
template <typename T>
struct FusedLlama<T>::Pass {
  at::Tensor inputs, targets;  // (R) each
  at::Tensor cosines, sines;
  FusedWeights<T> weights;
  PassContext<T> context;
  GradientPass gradients;

  const int64_t* input_ids() const { return inputs.const_data_ptr<int64_t>(); }
  const int64_t* target_ids() const { return targets.const_data_ptr<int64_t>(); }
  void ready(FusedOps<T>& ops, int64_t begin, int64_t end) const {
    if (!gradients.ready) return;
    // The fork's products may still write the gradients.
    ops.finish_gradients();
    gradients.ready(begin, end);
  }
};

template <typename T>
FusedLlama<T>::FusedLlama(const LlamaConfig& config, std::unique_ptr<FusedOps<T>> ops,
                          bool recompute)
    : config_(config),
      ops_(std::move(ops)),
      recompute_(recompute),
      parameters_(llama_layout(config), ops_->device()),
      rotary_(rotary_frequencies(config, ops_->device())),
      arena_(ops_->device()) {}

// Cuts all memory of the pass at once, before the first operation: a CUDA graph needs addresses
// that stay.
template <typename T>
auto FusedLlama<T>::begin_pass(const at::Tensor& tokens, const GradientPass& gradients) -> Pass {
  require_batch(tokens, config_.vocabulary);
  const int64_t length = tokens.size(1) - 1;
  const auto shape = attention_shape(config_, tokens.size(0), length);
  const auto [cosines, sines] = rotary_.tables(length);
  const BufferSizes sizes{.shape = shape,
                          .logit_rows = ops_->logit_rows(shape.rows(), config_.vocabulary),
                          .recompute = recompute_,
                          .without_attention = ops_->keeps_attention(),
                          .keep_gated = ops_->reads_gated()};
  Pass pass{.inputs = tokens.narrow(1, 0, length).flatten(),
            .targets = tokens.narrow(1, 1, length).flatten(),
            .cosines = cosines,
            .sines = sines,
            .weights = fused_weights<T>(parameters_, config_),
            .context = {.config = config_,
                        .shape = shape,
                        .rotary = rotary_rows(shape, cosines, sines),
                        .buffers = fused_buffers<T>(arena_, config_, sizes),
                        .add = gradients.add,
                        .stop = gradients.stop},
            .gradients = gradients};
  ops_->begin(pass.context, pass.weights);
  return pass;
}

// Each block writes its output to the next block's input.
template <typename T>
void FusedLlama<T>::forward(const Pass& pass) {
  const auto& buffers = pass.context.buffers;
  const auto& blocks = buffers.blocks;
  float* const first = blocks.empty() ? buffers.final_input : blocks[0].attention_input;
  ops_->embed(pass.context, pass.weights.embedding.values, pass.input_ids(), first);
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    float* const output =
        layer + 1 < blocks.size() ? blocks[layer + 1].attention_input : buffers.final_input;
    block_forward(*ops_, pass.context, pass.weights.blocks[layer], blocks[layer], output);
  }
  ops_->normalise(pass.context, pass.weights.final_norm, buffers.final_input, buffers.final_normal,
                  buffers.final_inverse_rms, /*sum=*/nullptr);
}

template <typename T>
void FusedLlama<T>::head(const Pass& pass, bool gradient) {
  const auto& weight = pass.weights.head;
  const int64_t rows = pass.context.shape.rows();
  const int64_t step = ops_->logit_rows(rows, config_.vocabulary);
  // In parts of rows: all logits at once would be the largest array by far.
  for (int64_t first = 0; first < rows; first += step) {
    const HeadRows part{.first = first, .count = std::min(step, rows - first)};
    ops_->project_head(pass.context, weight, part);
    if (!gradient) {
      ops_->cross_entropy(pass.context, part, pass.target_ids());
      continue;
    }
    ops_->cross_entropy_backward(pass.context, part, pass.target_ids(),
                                 static_cast<float>(pass.gradients.scale));
    ops_->head_backward(pass.context, weight, part, pass.context.add || first > 0);
  }
}

// In reverse order. Each range of the gradient is reported as soon as it is final, so that its
// reduction can begin.
template <typename T>
void FusedLlama<T>::backward(const Pass& pass) {
  const auto& context = pass.context;
  const auto& buffers = context.buffers;
  // The norm's backward adds to the gradient of the residual stream, which begins at 0.
  ops_->clear(buffers.d_stream, context.shape.rows() * config_.hidden);
  ops_->normalise_backward(context, pass.weights.final_norm, buffers.final_input,
                           buffers.final_inverse_rms);
  pass.ready(*ops_, pass.weights.blocks_end, parameters_.size());
  for (auto layer = buffers.blocks.size(); layer-- > 0;) {
    const auto& weights = pass.weights.blocks[layer];
    const auto& kept = buffers.blocks[layer];
    // The last block's arrays are still those of forward.
    if (recompute_ && layer + 1 < buffers.blocks.size()) {
      block_forward(*ops_, context, weights, kept, /*output=*/static_cast<float*>(nullptr));
    }
    block_backward(*ops_, context, weights, kept);
    pass.ready(*ops_, weights.begin, weights.end);
  }
  ops_->finish_gradients();  // with a tied table its gradient has the head's part already
  ops_->embed_backward(context, pass.input_ids(), context.add || config_.tied_embeddings,
                       pass.weights.embedding.gradient);
  pass.ready(*ops_, 0, config_.vocabulary * config_.hidden);
}

template <typename T>
at::Tensor FusedLlama<T>::sum_losses(const Pass& pass, double scale) const {
  const auto losses = at::for_blob(pass.context.buffers.losses, {pass.context.shape.rows()})
                          .options(at::TensorOptions(ops_->device()).dtype(at::kFloat))
                          .target_device(ops_->device())
                          .make_tensor();
  // In fp64, as thousands of losses are added.
  return (losses.sum(at::kDouble) * scale).to(at::kFloat);
}

template <typename T>
at::Tensor FusedLlama<T>::backpropagate(at::TensorList batch, const GradientPass& gradients) {
  const auto pass = begin_pass(batch.front(), gradients);
  forward(pass);
  head(pass, /*gradient=*/true);
  backward(pass);
  return sum_losses(pass, gradients.scale);
}

template <typename T>
std::optional<int64_t> FusedLlama<T>::recordable_memory() const {
  // On a CPU nothing is recorded.
  if (ops_->device().is_cpu()) return std::nullopt;
  return activation_bytes() + rotary_.positions();  // both only grow
}

template <typename T>
at::Tensor FusedLlama<T>::summed_loss(at::TensorList batch, const std::stop_token& stop) {
  const auto pass = begin_pass(batch.front(), {.stop = stop});
  forward(pass);
  head(pass, /*gradient=*/false);
  return sum_losses(pass, 1);
}

template class FusedLlama<float>;
template class FusedLlama<BF16>;

}  // namespace farstep
