// The task of naming what an image shows, learned by a small convolutional net.
#pragma once

#include "trainer/data/image_set.h"
#include "trainer/model/convnet/convnet.h"
#include "trainer/model/task.h"

namespace farstep {

class ImageTask : public Task {
 public:
  // Both sets must outlive this. The net has the shape of the training images, and as many classes.
  ImageTask(const ImageSet& training, const ImageSet& validation);

  std::unique_ptr<TrainableModel> make_model(at::Device device) const override;
  int64_t num_examples() const override { return training_.size(); }
  Batch read(std::span<const int64_t> numbers) const override;
  // Counts the images whose label has the largest logit.
  Validation validate(TrainableModel& model, const ValidationPart& part) const override;

 private:
  const ImageSet& training_;
  const ImageSet& validation_;
};

}  // namespace farstep
