// Labelled images of one size, in memory: MNIST, Fashion-MNIST and what comes in their form.
//
// Thread-safe once loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "trainer/data/examples.h"

namespace farstep {

// Images of a batch and their labels.
struct ImageBatch {
  int64_t height = 0, width = 0;
  std::vector<float> images;  // (examples, 1, height, width)
  std::vector<int64_t> labels;

  // Two parts: the images, and the labels, a target an image. Holds as long as this.
  BatchView view() const;
};

class ImageSet : public Examples {
 public:
  // Reads two IDX files, of images (N, height, width) and of labels (N). Throws DataError if they
  // do not belong together, or there are no images.
  ImageSet(const std::filesystem::path& images, const std::filesystem::path& labels);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t classes() const { return classes_; }  // one more than the largest label

  // Returns the images of those numbers, in that order, their values from -1 (black) to 1.
  ImageBatch images(std::span<const int64_t> numbers) const;
  // The batch's memory is an ImageBatch.
  Batch read(std::span<const int64_t> numbers) const override;

 private:
  int64_t height_ = 0, width_ = 0, classes_ = 0;
  std::vector<uint8_t> images_, labels_;
};

}  // namespace farstep
