#include "trainer/model/language/model_folder.h"

#include "trainer/model/device.h"

namespace farstep {

std::unique_ptr<Llama> open_model(const HfFolder& folder, int64_t threads) {
  const auto shape = from_hugging_face(folder.config, (folder.path / kHfConfigFile).string());
  DeviceConfig cpu;
  cpu.threads = threads;
  const auto device = open_device(cpu);
  auto model = std::make_unique<Llama>(shape, device, ComputeType::kFP32);
  auto& parameters = model->parameters();
  load_parameters(folder, named_parameters(parameters.layout(), parameters.host_values().pull()));
  parameters.host_values().push();
  return model;
}

}  // namespace farstep
