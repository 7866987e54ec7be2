#include "trainer/model/convnet/image_task.h"

#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"

namespace farstep {

ImageTask::ImageTask(const ImageSet& training, const ImageSet& validation)
    : training_(training),
      validation_(validation),
      config_{
          .height = training.height(), .width = training.width(), .classes = training.classes()} {}

std::unique_ptr<TrainableModel> ImageTask::make_model(at::Device device, bool recompute) const {
  if (recompute) {
    throw ConfigError(
        "devices[].recompute: the convolutional net cannot compute again what it does not keep; "
        "set recompute to false");
  }
  return std::make_unique<ConvNet>(config_, device);
}

std::string ImageTask::config_text() const {
  auto json = to_json(config_);
  json["model_type"] = "farstep_convnet";
  return json.dump(2);
}

}  // namespace farstep
