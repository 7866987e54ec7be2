#include "trainer/commands/torch/model_options.h"

#include <spdlog/spdlog.h>

#include "trainer/base/processor/usable_cores.h"
#include "trainer/base/system/free_memory.h"

namespace farstep {

DeviceConfig ModelOptions::device_config() const {
  DeviceConfig config;
  config.kind = device;
  config.index = index;
  config.threads = threads > 0 ? threads : usable_cores();
  return config;
}

ComputeType ModelOptions::compute_type() const {
  if (compute == ComputeType::kFP8) throw ConfigError("--compute fp8: use fp32 or bf16 here");
  if (compute != ComputeType::kAuto) return compute;
  return device == DeviceKind::kCuda ? ComputeType::kBF16 : ComputeType::kFP32;
}

// Without the check the system would end this process, or another one, while it loads.
std::unique_ptr<Llama> ModelOptions::open(const LanguageFolder& folder, int64_t beside) const {
  const auto count = num_parameters(folder.layout);
  // A model has values and gradients. A GPU's values come through the memory of the processor.
  const int64_t bytes = static_cast<int64_t>(sizeof(float)) * count;
  require_free_ram(device == DeviceKind::kCpu ? 2 * bytes + beside : bytes,
                   fmt::format("{}: a model of {} parameters", folder.folder.path.string(), count),
                   "end other programs, take a smaller model, or use a machine with more memory");
  if (!folder.caution.empty()) spdlog::warn("{}", folder.caution);
  return open_model(folder, device_config(), compute_type());
}

}  // namespace farstep
