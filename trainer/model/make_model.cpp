#include "trainer/model/make_model.h"

#include "trainer/base/error.h"
#include "trainer/model/cpu_ops.h"
#include "trainer/model/fused_llama.h"
#include "trainer/model/llama.h"

namespace farstep {

std::unique_ptr<TrainableModel> make_model(const LlamaConfig& shape, at::Device device,
                                           const InnerConfig& config, bool recompute) {
  if (config.step == StepKind::kAutograd || !device.is_cpu()) {
    if (recompute) {
      throw ConfigError(
          "devices[].recompute: only the fused step can compute again what it does not keep; set "
          "inner.step to fused, or recompute to false");
    }
    return std::make_unique<Llama>(shape, device, config.compute);
  }
  if (config.compute == ComputeType::kBF16) {
    return std::make_unique<FusedLlama<BF16>>(shape, std::make_unique<CpuOps<BF16>>(), recompute);
  }
  return std::make_unique<FusedLlama<float>>(shape, std::make_unique<CpuOps<float>>(), recompute);
}

}  // namespace farstep
