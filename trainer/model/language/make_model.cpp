#include "trainer/model/language/make_model.h"

#include "trainer/base/error.h"
#include "trainer/model/cpu_ops/cpu_ops.h"
#include "trainer/model/cpu_ops/fp8_cpu_ops.h"
#include "trainer/model/fused/fused_llama.h"
#include "trainer/model/gpu_ops/make_gpu_ops.h"
#include "trainer/model/llama/llama.h"

namespace farstep {

namespace {

// The fused step's operations in T; null where they cannot be had.
template <typename T>
std::unique_ptr<FusedOps<T>> make_ops(const LlamaConfig& shape, at::Device device, bool fp8);

template <>
std::unique_ptr<FusedOps<float>> make_ops(const LlamaConfig&, at::Device device, bool) {
  if (!device.is_cpu()) return nullptr;
  return std::make_unique<CpuOps<float>>();
}
template <>
std::unique_ptr<FusedOps<BF16>> make_ops([[maybe_unused]] const LlamaConfig& shape,
                                         at::Device device, bool fp8) {
#ifdef FARSTEP_HAS_CUDA
  if (!device.is_cpu()) return make_gpu_ops(shape, device, fp8);
#endif
  if (!device.is_cpu()) return nullptr;
  if (fp8) return std::make_unique<Fp8CpuOps>();
  return std::make_unique<CpuOps<BF16>>();
}

// Of a device alone: a run's sites agree before.
ComputeType compute_on(at::Device device, ComputeType asked) {
  if (asked != ComputeType::kAuto) return asked;
  return device.is_cpu() ? ComputeType::kFP32 : ComputeType::kBF16;
}

template <typename T>
std::unique_ptr<TrainableModel> make_fused(const LlamaConfig& shape, at::Device device, bool fp8,
                                           bool recompute) {
  auto ops = make_ops<T>(shape, device, fp8);
  if (!ops) return nullptr;
  return std::make_unique<FusedLlama<T>>(shape, std::move(ops), recompute);
}

}  // namespace

std::unique_ptr<TrainableModel> make_model(const LlamaConfig& shape, at::Device device,
                                           ComputeType asked, StepKind step, bool recompute) {
  const auto compute = compute_on(device, asked);
  const bool fp8 = compute == ComputeType::kFP8;
  std::unique_ptr<TrainableModel> model;
  if (step == StepKind::kFused) {
    model = compute == ComputeType::kFP32 ? make_fused<float>(shape, device, fp8, recompute)
                                          : make_fused<BF16>(shape, device, fp8, recompute);
  }
  if (model) return model;
  if (fp8) {
    throw ConfigError(
        "inner.compute: only the fused step has fp8, on a CPU or on a GPU that runs it (heads of a "
        "multiple of 8 values, 256 at most); set inner.step to fused, or inner.compute to bf16");
  }
  if (recompute) {
    throw ConfigError(
        "devices[].recompute: only the fused step can compute again what it does not keep; set "
        "inner.step to fused (on a GPU with inner.compute bf16 or fp8), or recompute to false");
  }
  return std::make_unique<Llama>(shape, device, compute);
}

}  // namespace farstep
