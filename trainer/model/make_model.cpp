#include "trainer/model/make_model.h"

#include "trainer/model/fused_llama.h"
#include "trainer/model/llama.h"

namespace farstep {

std::unique_ptr<TrainableModel> make_model(const LlamaConfig& shape, at::Device device,
                                           const InnerConfig& config) {
  if (config.step == StepKind::kAutograd || !device.is_cpu()) {
    return std::make_unique<Llama>(shape, device, config.compute);
  }
  if (config.compute == ComputeType::kBF16) return std::make_unique<FusedLlama<BF16>>(shape);
  return std::make_unique<FusedLlama<float>>(shape);
}

}  // namespace farstep
