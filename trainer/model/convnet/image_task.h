// The task of naming what an image shows, learned by a small convolutional net.
#pragma once

#include <string>

#include "trainer/data/image_set.h"
#include "trainer/model/convnet/convnet.h"
#include "trainer/model/task.h"

namespace farstep {

class ImageTask : public Task {
 public:
  // Both sets must outlive this. The net has the shape of the training images, and as many classes.
  ImageTask(const ImageSet& training, const ImageSet& validation);

  // Throws ConfigError with `recompute`: the net keeps all that backward needs.
  std::unique_ptr<TrainableModel> make_model(at::Device device, bool recompute) const override;
  // Returns the fields of ConvNetConfig.
  std::string config_text() const override;
  const ImageSet& training() const override { return training_; }
  const ImageSet& validation() const override { return validation_; }

 private:
  const ImageSet& training_;
  const ImageSet& validation_;
  const ConvNetConfig config_;
};

}  // namespace farstep
