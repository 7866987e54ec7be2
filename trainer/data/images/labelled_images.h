// Images of one size with what each of them shows, as a data set has them: bytes in memory.
//
// A value; thread-safe as such.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace farstep {

// What all images of a set have in common.
struct ImageShape {
  int64_t channels = 0, height = 0, width = 0;

  int64_t size() const { return channels * height * width; }
  // Returns "3 x 32 x 32".
  std::string text() const;
  bool operator==(const ImageShape&) const = default;
};

struct LabelledImages {
  ImageShape shape;
  std::vector<uint8_t> pixels;  // (examples, channels, height, width)
  std::vector<uint8_t> labels;  // (examples)

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  // Returns the pixels (channels, height, width) of image `number`, which exists.
  std::span<const uint8_t> image(int64_t number) const;
  // Returns a 64-bit checksum of shape, pixels and labels.
  uint64_t digest() const;
};

// The mean and the deviation of each channel, where black is 0 and white is 1.
struct PixelStatistics {
  std::vector<double> mean, deviation;
};

// Returns the statistics of all pixels. The same bits on every machine: sums of integers, divided
// once. A channel that is one value everywhere has deviation 0. There must be images.
PixelStatistics pixel_statistics(const LabelledImages& images);

}  // namespace farstep
