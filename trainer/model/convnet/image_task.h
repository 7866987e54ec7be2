// The task of a run whose model is a convolutional net: it learns to name what an image shows.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "trainer/data/images/image_data.h"
#include "trainer/data/images/image_examples.h"
#include "trainer/model/shape/convnet_config.h"
#include "trainer/model/task.h"
#include "trainer/settings/run_config.h"

namespace farstep {

// Returns the net that a run trains on `data`, with the means and deviations of the run's
// `data.images`, or else those of the images to train on. Throws ConfigError with `run_source` and
// the JSON path if the run's are of another number of channels.
ConvNetConfig convnet_of_run(const RunConfig& run, const std::string& run_source,
                             const ImageData& data);

class ImageTask : public Task {
 public:
  // Trains `net`, which is that of convnet_of_run() for the run's images. `data` is null at a site
  // that has none; there are no examples then.
  ImageTask(const RunConfig& run, ConvNetConfig net, std::shared_ptr<const ImageData> data);

  // Throws ConfigError as make_convnet() does.
  std::unique_ptr<TrainableModel> make_model(at::Device device, bool recompute) const override;
  // Returns the JSON from which convnet_from_json() reads the net.
  std::string config_text() const override { return convnet_to_json(config_).dump(2); }
  ExampleForm example_form() const override {
    return image_form(config_.images(), config_.classes);
  }
  const ImageExamples& training() const override { return training_.value(); }
  const ImageExamples& validation() const override { return validation_.value(); }

 private:
  const std::shared_ptr<const ImageData> data_;  // null: none
  const ConvNetConfig config_;
  const ComputeType compute_;
  std::optional<const ImageExamples> training_, validation_;  // nullopt: there are none
};

}  // namespace farstep
