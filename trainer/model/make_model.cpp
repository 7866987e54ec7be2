#include "trainer/model/make_model.h"

#include "trainer/base/error.h"
#include "trainer/model/cpu_ops.h"
#include "trainer/model/fused_llama.h"
#include "trainer/model/llama.h"
#include "trainer/model/make_gpu_ops.h"

namespace farstep {

namespace {

// The fused step's operations in T; null where they cannot be had.
template <typename T>
std::unique_ptr<FusedOps<T>> make_ops(const LlamaConfig& shape, at::Device device);

template <>
std::unique_ptr<FusedOps<float>> make_ops(const LlamaConfig&, at::Device device) {
  if (!device.is_cpu()) return nullptr;
  return std::make_unique<CpuOps<float>>();
}
template <>
std::unique_ptr<FusedOps<BF16>> make_ops(const LlamaConfig& shape, at::Device device) {
  if (!device.is_cpu()) return make_gpu_ops(shape, device);
  return std::make_unique<CpuOps<BF16>>();
}

template <typename T>
std::unique_ptr<TrainableModel> make_fused(const LlamaConfig& shape, at::Device device,
                                           bool recompute) {
  auto ops = make_ops<T>(shape, device);
  if (!ops) return nullptr;
  return std::make_unique<FusedLlama<T>>(shape, std::move(ops), recompute);
}

}  // namespace

std::unique_ptr<TrainableModel> make_model(const LlamaConfig& shape, at::Device device,
                                           const InnerConfig& config, bool recompute) {
  std::unique_ptr<TrainableModel> model;
  if (config.step == StepKind::kFused) {
    model = config.compute == ComputeType::kBF16 ? make_fused<BF16>(shape, device, recompute)
                                                 : make_fused<float>(shape, device, recompute);
  }
  if (model) return model;
  if (recompute) {
    throw ConfigError(
        "devices[].recompute: only the fused step can compute again what it does not keep; set "
        "inner.step to fused (on a GPU with inner.compute bf16), or recompute to false");
  }
  return std::make_unique<Llama>(shape, device, config.compute);
}

}  // namespace farstep
