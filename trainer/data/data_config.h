// The data recipe (`data` of a run file).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/fields.h"

namespace farstep {

// A folder of data, and its part of what training sees.
struct DataFolder {
  std::string folder;
  double weight = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("folder", folder, "folder of token shards", kRequired);
    visit("weight", weight, "its part of the windows, relative to the other folders'", above(0));
  }
};

enum class DataOrder { kShuffled, kSequential };
inline std::span<const std::string_view> enum_names(DataOrder) {
  static constexpr std::array<std::string_view, 2> kNames{"shuffled", "sequential"};
  return kNames;
}

// How images come to a net.
struct ImageDataConfig {
  int64_t crop_padding = 4;
  bool flip = true;
  std::vector<double> mean = {}, deviation = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("crop_padding", crop_padding,
          "training cuts its images out of ones with so many black pixels at each side; 0 does not",
          in_range(0, 1024));
    visit("flip", flip, "training flips half of its images from left to right");
    visit(
        "mean", mean,
        "what is subtracted from each channel, from 0 (black) to 1; empty: the mean of the images "
        "to train on");
    visit("deviation", deviation,
          "by what each channel is divided after that; empty: the deviation of these images");
  }
};

struct DataConfig {
  int64_t sequence_length = 1024;
  DataOrder order = DataOrder::kShuffled;
  ImageDataConfig images;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sequence_length", sequence_length, "language models: tokens of one sequence",
          at_least(1));
    visit("order", order, "order of the training examples; sequential is for replay");
    visit("images", images, "image models: how images come to the net");
  }
};

}  // namespace farstep
