#include "trainer/commands/torch/model_options.h"

#include <spdlog/spdlog.h>

#include "trainer/base/processor/usable_cores.h"

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

std::unique_ptr<Llama> ModelOptions::open(const LanguageFolder& folder) const {
  if (!folder.caution.empty()) spdlog::warn("{}", folder.caution);
  return open_model(folder, device_config(), compute_type());
}

}  // namespace farstep
