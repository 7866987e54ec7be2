#include "trainer/model/convnet/convnet_folder.h"

#include "trainer/model/device.h"

namespace farstep {

OpenedNet open_convnet(const HfFolder& folder, int64_t threads) {
  OpenedNet opened{
      .config = convnet_from_json(folder.config, (folder.path / kHfConfigFile).string()),
      .net = nullptr};
  DeviceConfig cpu;
  cpu.threads = threads;
  opened.net = std::make_unique<ConvNet>(opened.config, open_device(cpu), ComputeType::kFP32);
  auto& parameters = opened.net->parameters();
  load_parameters(folder, named_parameters(parameters.layout(), parameters.host_values().pull()));
  parameters.host_values().push();
  return opened;
}

}  // namespace farstep
