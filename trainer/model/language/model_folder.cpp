#include "trainer/model/language/model_folder.h"

#include "trainer/model/device.h"

namespace farstep {

std::unique_ptr<Llama> open_model(const HfFolder& folder, const DeviceConfig& device,
                                  ComputeType compute) {
  const auto shape = from_hugging_face(folder.config, (folder.path / kHfConfigFile).string());
  auto model = std::make_unique<Llama>(shape, open_device(device), compute);
  auto& parameters = model->parameters();
  load_parameters(folder, named_parameters(parameters.layout(), parameters.host_values().pull()));
  parameters.host_values().push();
  return model;
}

std::optional<int64_t> trained_length(const HfFolder& folder) {
  const auto found = folder.config.find("max_position_embeddings");
  if (found == folder.config.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

}  // namespace farstep
