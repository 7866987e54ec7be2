// Labelled images as examples: normalised, and in training a little different in every epoch.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/data/example_form.h"
#include "trainer/data/examples.h"
#include "trainer/data/images/labelled_images.h"

namespace farstep {

// How training varies its images (He et al. 2016, section 4.2): `padding` black pixels are put on
// each side, and a part of the image's own size is cut out at a random place; half of the images
// are flipped from left to right.
struct Augmentation {
  int64_t padding = 4;
  bool flip = true;
  uint64_t seed = 1;
};

// What one image gets: it is moved by so many pixels, and flipped after that.
struct Variation {
  int64_t down = 0, right = 0;  // from -padding to padding
  bool flip = false;
};

// Returns the variation of an example in an epoch. It depends on the arguments alone, so equal runs
// get equal bits, whichever site reads the example, and a resumed run goes on with them.
Variation variation_of(const Augmentation& augmentation, const Draw& draw);

// Returns the form of normalised images with one of `classes` labels each; 0: any.
ExampleForm image_form(const ImageShape& shape, int64_t classes = 0);

// Images of a batch and their labels.
struct ImageBatch {
  ImageShape shape;
  std::vector<float> images;  // (examples, channels, height, width)
  std::vector<int64_t> labels;

  // Two parts: the images, and the labels, a target an image. Holds as long as this.
  BatchView view() const;
};

class ImageExamples : public Examples {
 public:
  // `images` must outlive this. A pixel becomes (value - mean) / deviation of its channel, with
  // values from 0 (black) to 1; a deviation of 0 counts as 1. Without `augmentation` draw() is
  // read(). Throws InternalError if the statistics have another number of channels.
  ImageExamples(const LabelledImages& images, const PixelStatistics& statistics,
                std::optional<Augmentation> augmentation);

  int64_t size() const override { return images_.size(); }
  // The images as they are. The batch's memory is an ImageBatch.
  Batch read(std::span<const int64_t> numbers) const override;
  // The images as the augmentation varies them.
  Batch draw(std::span<const Draw> draws) const override;

 private:
  std::shared_ptr<ImageBatch> empty_batch(std::size_t images) const;
  void append(int64_t number, const Variation& variation, ImageBatch& batch) const;

  const LabelledImages& images_;
  const std::optional<Augmentation> augmentation_;
  std::vector<float> values_;  // of each byte, 256 a channel
};

}  // namespace farstep
