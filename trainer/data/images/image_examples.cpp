#include "trainer/data/image_set.h"

#include <algorithm>
#include <memory>

#include "trainer/base/error.h"
#include "trainer/data/idx_file.h"

namespace farstep {

BatchView ImageBatch::view() const {
  const auto examples = static_cast<int64_t>(labels.size());
  return {.examples = examples,
          .targets = examples,
          .parts = {{DType::kF32, {1, height, width}, std::as_bytes(std::span(images))},
                    {DType::kI64, {}, std::as_bytes(std::span(labels))}},
          .text = fmt::format("images of {} x {}", height, width)};
}

ImageSet::ImageSet(const std::filesystem::path& images, const std::filesystem::path& labels) {
  auto pixels = read_idx_file(images);
  auto classes = read_idx_file(labels);
  if (pixels.shape.size() != 3 || classes.shape.size() != 1 ||
      pixels.shape.front() != classes.shape.front() || classes.values.empty()) {
    throw DataError(fmt::format("{}: is not as many images as {} has labels", images.string(),
                                labels.string()));
  }
  height_ = pixels.shape[1];
  width_ = pixels.shape[2];
  images_ = std::move(pixels.values);
  labels_ = std::move(classes.values);
  classes_ = 1 + *std::ranges::max_element(labels_);
}

ImageBatch ImageSet::images(std::span<const int64_t> numbers) const {
  ImageBatch batch{.height = height_, .width = width_, .images = {}, .labels = {}};
  const auto pixels = static_cast<std::size_t>(height_ * width_);
  batch.images.reserve(numbers.size() * pixels);
  for (const int64_t number : numbers) {
    FARSTEP_CHECK(0 <= number && number < size(), "image {} of {}", number, size());
    const auto image = static_cast<std::size_t>(number);
    for (const uint8_t grey : std::span(images_).subspan(image * pixels, pixels)) {
      // From 0 to 255 to -1 to 1, as layers are initialised for inputs around 0.
      batch.images.push_back(static_cast<float>(grey) / 127.5F - 1);
    }
    batch.labels.push_back(labels_[image]);
  }
  return batch;
}

Batch ImageSet::read(std::span<const int64_t> numbers) const {
  const auto batch = std::make_shared<const ImageBatch>(images(numbers));
  return {.view = batch->view(), .memory = batch};
}

}  // namespace farstep
