#include "trainer/data/images/labelled_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

std::string ImageShape::text() const {
  return fmt::format("{} x {} x {}", channels, height, width);
}

std::span<const uint8_t> LabelledImages::image(int64_t number) const {
  FARSTEP_CHECK(0 <= number && number < size(), "image {} of {}", number, size());
  const auto bytes = static_cast<std::size_t>(shape.size());
  return std::span(pixels).subspan(static_cast<std::size_t>(number) * bytes, bytes);
}

uint64_t LabelledImages::digest() const {
  StreamingChecksum sum;
  const int64_t facts[] = {shape.channels, shape.height, shape.width, size()};
  sum.update(std::as_bytes(std::span(facts)));
  sum.update(std::as_bytes(std::span(pixels)));
  sum.update(std::as_bytes(std::span(labels)));
  return sum.value();
}

PixelStatistics pixel_statistics(const LabelledImages& images) {
  FARSTEP_CHECK(images.size() > 0, "statistics of no images");
  constexpr double kWhite = 255;
  const auto& shape = images.shape;
  const auto plane = static_cast<std::size_t>(shape.height * shape.width);
  const auto count = static_cast<double>(images.size()) * static_cast<double>(plane);
  PixelStatistics statistics;
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(shape.channels); ++channel) {
    uint64_t sum = 0, squares = 0;
    for (int64_t number = 0; number < images.size(); ++number) {
      for (const uint64_t value : images.image(number).subspan(channel * plane, plane)) {
        sum += value;
        squares += value * value;
      }
    }
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    statistics.mean.push_back(mean / kWhite);
    statistics.deviation.push_back(std::sqrt(std::max(0.0, variance)) / kWhite);
  }
  return statistics;
}

}  // namespace farstep
