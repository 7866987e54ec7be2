#include "trainer/model/language/model_folder.h"

#include "trainer/base/error.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/model/device.h"

namespace farstep {

namespace fs = std::filesystem;

fs::path find_model(const fs::path& folder) {
  if (fs::exists(folder / kHfConfigFile)) return folder;
  const auto checkpoints = resumable_checkpoints(folder / "checkpoints");
  if (checkpoints.empty()) {
    throw DataError(fmt::format(
        "{}: neither a model (config.json, model.safetensors) nor a site's folder with checkpoints",
        folder.string()));
  }
  return checkpoints.front().folder;
}

std::unique_ptr<Llama> open_model(const fs::path& folder, int64_t threads) {
  const auto hf = read_hf_folder(find_model(folder));
  const auto shape = from_hugging_face(hf.config, (hf.path / kHfConfigFile).string());
  DeviceConfig cpu;
  cpu.threads = threads;
  const auto device = open_device(cpu);
  auto model = std::make_unique<Llama>(shape, device, ComputeType::kFP32);
  auto& parameters = model->parameters();
  load_parameters(hf, named_parameters(parameters.layout(), parameters.host_values().pull()));
  parameters.host_values().push();
  return model;
}

}  // namespace farstep
