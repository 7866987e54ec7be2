#include "trainer/data/images/image_examples.h"

#include <fmt/format.h>

#include <array>

#include "trainer/base/error.h"
#include "trainer/base/mix.h"

namespace farstep {

namespace {

constexpr std::size_t kBytes = 256;  // that a pixel may be

// One plane of an image, (height, width).
struct Plane {
  std::span<const uint8_t> pixels;
  int64_t height = 0, width = 0;

  // Returns the pixel, or black outside the image.
  uint8_t at(int64_t row, int64_t column) const {
    if (row < 0 || row >= height || column < 0 || column >= width) return 0;
    return pixels[static_cast<std::size_t>(row * width + column)];
  }
};

}  // namespace

Variation variation_of(const Augmentation& augmentation, const Draw& draw) {
  uint64_t bits = mix(augmentation.seed);
  bits = mix(bits ^ static_cast<uint64_t>(draw.epoch));
  bits = mix(bits ^ static_cast<uint64_t>(draw.number));
  // From the high bits, as a remainder of the low ones would favour small numbers.
  const auto shift_of = [&](uint64_t random) {
    const auto places = static_cast<uint64_t>(2 * augmentation.padding + 1);
    return static_cast<int64_t>((random >> 32) * places >> 32) - augmentation.padding;
  };
  return {.down = shift_of(mix(bits + 1)),
          .right = shift_of(mix(bits + 2)),
          .flip = augmentation.flip && (mix(bits + 3) >> 63) != 0};
}

ExampleForm image_form(const ImageShape& shape, int64_t classes) {
  return {.parts = {{.dtype = DType::kF32, .shape = {shape.channels, shape.height, shape.width}},
                    {.dtype = DType::kI64, .shape = {}, .num_values = classes}},
          .targets = 1,
          .text = fmt::format("images of {}", shape.text())};
}

BatchView ImageBatch::view() const {
  return view_of(image_form(shape), std::ssize(labels),
                 std::array{std::as_bytes(std::span(images)), std::as_bytes(std::span(labels))});
}

ImageExamples::ImageExamples(const LabelledImages& images, const PixelStatistics& statistics,
                             std::optional<Augmentation> augmentation)
    : images_(images), augmentation_(augmentation) {
  const auto channels = static_cast<std::size_t>(images.shape.channels);
  FARSTEP_CHECK(statistics.mean.size() == channels && statistics.deviation.size() == channels,
                "statistics of {} channels for {}", statistics.mean.size(), channels);
  values_.reserve(channels * kBytes);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double deviation = statistics.deviation[channel];
    for (std::size_t byte = 0; byte < kBytes; ++byte) {
      const double value = static_cast<double>(byte) / 255 - statistics.mean[channel];
      values_.push_back(static_cast<float>(deviation > 0 ? value / deviation : value));
    }
  }
}

Batch ImageExamples::read(std::span<const int64_t> numbers) const {
  const auto batch = empty_batch(numbers.size());
  for (const int64_t number : numbers) append(number, {}, *batch);
  return {.view = batch->view(), .memory = batch};
}

Batch ImageExamples::draw(std::span<const Draw> draws) const {
  const auto batch = empty_batch(draws.size());
  for (const auto& draw : draws) {
    append(draw.number, augmentation_ ? variation_of(*augmentation_, draw) : Variation{}, *batch);
  }
  return {.view = batch->view(), .memory = batch};
}

std::shared_ptr<ImageBatch> ImageExamples::empty_batch(std::size_t images) const {
  auto batch =
      std::make_shared<ImageBatch>(ImageBatch{.shape = images_.shape, .images = {}, .labels = {}});
  batch->images.reserve(images * static_cast<std::size_t>(images_.shape.size()));
  batch->labels.reserve(images);
  return batch;
}

void ImageExamples::append(int64_t number, const Variation& variation, ImageBatch& batch) const {
  const auto& shape = images_.shape;
  const auto pixels = images_.image(number);
  const auto plane_size = static_cast<std::size_t>(shape.height * shape.width);
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(shape.channels); ++channel) {
    const Plane plane{.pixels = pixels.subspan(channel * plane_size, plane_size),
                      .height = shape.height,
                      .width = shape.width};
    const auto values = std::span(values_).subspan(channel * kBytes, kBytes);
    for (int64_t row = 0; row < shape.height; ++row) {
      for (int64_t column = 0; column < shape.width; ++column) {
        const int64_t from = variation.flip ? shape.width - 1 - column : column;
        batch.images.push_back(values[plane.at(row - variation.down, from - variation.right)]);
      }
    }
  }
  batch.labels.push_back(images_.labels[static_cast<std::size_t>(number)]);
}

}  // namespace farstep
