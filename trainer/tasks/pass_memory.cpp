#include "trainer/tasks/pass_memory.h"

#include <algorithm>
#include <cmath>

#include "trainer/model/convnet/convnet.h"
#include "trainer/model/cpu_ops/cpu_ops.h"
#include "trainer/model/fused/fused_buffers.h"
#include "trainer/model/llama/llama_layout.h"

namespace farstep {

namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kHalf = sizeof(BF16);

ComputeType compute_of(const PassTerms& terms) {
  if (terms.compute != ComputeType::kAuto) return terms.compute;
  return terms.device.kind == DeviceKind::kCpu ? ComputeType::kFP32 : ComputeType::kBF16;
}

template <typename T>
PassMemory fused_on_cpu(const LlamaConfig& config, const PassTerms& terms,
                        const AttentionShape& shape) {
  const BufferSizes sizes{.shape = shape,
                          .logit_rows = CpuOps<T>().logit_rows(shape.rows(), config.vocabulary),
                          .recompute = terms.device.recompute};
  const auto buffers = buffer_bytes<T>(config, sizes);
  return {.activations_bytes = buffers.all - buffers.logits +
                               CpuOps<T>::scratch_bytes_of(config, shape, terms.device.threads),
          .logits_bytes = buffers.logits};
}

// LibTorch keeps attention's results, and the operations have arrays of a few rows' width.
PassMemory fused_on_gpu(const LlamaConfig& config, const PassTerms& terms,
                        const AttentionShape& shape) {
  const int64_t rows = shape.rows();
  const BufferSizes sizes{
      .shape = shape,
      .logit_rows = std::clamp<int64_t>(kMostGpuLogitBytes / (config.vocabulary * kFloat), 1, rows),
      .recompute = terms.device.recompute,
      .without_attention = true,
      .keep_gated = true};
  const auto buffers = buffer_bytes<BF16>(config, sizes);
  const int64_t attention =
      config.layers * rows * (kHalf * shape.mixed_width() + kFloat * config.heads);
  const int64_t scratch = rows * kHalf * (3 * config.hidden + config.intermediate);
  return {.activations_bytes = buffers.all - buffers.logits + attention + scratch,
          .logits_bytes = buffers.logits};
}

// What autograd keeps of a block, by row: the residual stream before and after attention, both
// norms with their results, queries, keys and values before and after their rotation, attention's
// result, and four arrays of the feed-forward. All logits are there at once, with their logarithms
// and gradients.
PassMemory autograd_llama(const LlamaConfig& config, int64_t product_bytes,
                          const AttentionShape& shape) {
  const int64_t rows = shape.rows();
  const int64_t block =
      4 * kFloat * config.hidden + product_bytes * (4 * config.hidden + 2 * shape.width() +
                                                    shape.mixed_width() + 4 * config.intermediate);
  return {.activations_bytes = config.layers * rows * block,
          .logits_bytes = rows * config.vocabulary * (3 * kFloat + product_bytes)};
}

}  // namespace

PassMemory llama_pass_memory(const LlamaConfig& config, const PassTerms& terms, int64_t sequences,
                             int64_t length) {
  const auto compute = compute_of(terms);
  const auto shape = attention_shape(config, sequences, length);
  const bool on_cpu = terms.device.kind == DeviceKind::kCpu;
  const int64_t parameters = num_parameters(llama_layout(config));
  const bool is_fp32 = compute == ComputeType::kFP32;
  PassMemory memory;
  if (terms.step == StepKind::kAutograd || (is_fp32 && !on_cpu)) {
    memory = autograd_llama(config, is_fp32 ? kFloat : kHalf, shape);
  } else if (!on_cpu) {
    memory = fused_on_gpu(config, terms, shape);
  } else {
    memory = is_fp32 ? fused_on_cpu<float>(config, terms, shape)
                     : fused_on_cpu<BF16>(config, terms, shape);
  }
  if (!is_fp32) memory.weight_copies_bytes = kHalf * parameters;
  // Each matrix of the blocks in FP8: on a CPU emulated in bf16, on a GPU in two layouts of a byte.
  if (compute == ComputeType::kFP8) memory.weight_copies_bytes += kHalf * parameters;
  return memory;
}

PassMemory convnet_pass_memory(const ConvNetConfig& config, const PassTerms& terms,
                               int64_t images) {
  const bool is_fp32 = compute_of(terms) == ComputeType::kFP32;
  const auto net = list_net(config);
  int64_t outputs = 0;  // of all convolutions and dense layers, of an image
  for (const auto& product : net.products) outputs += product.columns * product.positions;
  // For each of them the input of a norm and the result of a ReLU, for every second one the sum of
  // a block and its shortcut; the rest is what the allocator and oneDNN hold. In bf16 a copy in the
  // products' type takes the place of a copy that oneDNN reorders.
  constexpr double kKeptBytes = 14.5;
  const int64_t input = config.channels * config.height * config.width * kFloat;
  return {.weight_copies_bytes = is_fp32 ? 0 : kHalf * num_parameters(net.layout),
          .activations_bytes =
              images * (std::llround(kKeptBytes * static_cast<double>(outputs)) + input),
          .logits_bytes = images * config.classes * 3 * kFloat};
}

}  // namespace farstep
