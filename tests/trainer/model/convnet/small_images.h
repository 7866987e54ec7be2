// A folder of few small images for tests, each with one bright row that is its label.
#pragma once

#include <memory>

#include "tests/support/temporary_folder.h"
#include "tests/trainer/data/images/idx_files.h"
#include "trainer/data/images/image_data.h"
#include "trainer/settings/run_config.h"

namespace farstep {

class SmallImages {
 public:
  explicit SmallImages(int64_t training = 64, int64_t validation = 23, int64_t size = 8) {
    write_bright_rows(folder_.path(), "train", training, size, 4);
    write_bright_rows(folder_.path(), "t10k", validation, size, 4);
  }

  std::filesystem::path path() const { return folder_.path(); }
  std::shared_ptr<const ImageData> data() const {
    return std::make_shared<const ImageData>(folder_.path());
  }

 private:
  TemporaryFolder folder_;
};

// A run of such images by a narrow ResNet-18. They are not varied: a row that moves has another
// label.
inline RunConfig small_image_run() {
  RunConfig run;
  run.model.family = ModelFamily::kImages;
  run.model.images.width = 4;
  run.data.images = {.crop_padding = 0, .flip = false};
  run.inner.rate.peak_learning_rate = 3e-3;
  run.inner.adamw.weight_decay = 0.01;
  return run;
}

}  // namespace farstep
