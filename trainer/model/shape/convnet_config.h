// The shape of an image classifier and the statistics of its images, as a checkpoint has them.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/data/images/labelled_images.h"
#include "trainer/model/shape/image_model_config.h"

namespace farstep {

struct ConvNetConfig {
  ImageNet net = ImageNet::kResNet18;
  int64_t channels = 1, height = 28, width = 28;
  int64_t classes = 10;
  int64_t first_channels = 64;
  int64_t norm_groups = 8;
  int64_t pixels = 0;
  std::vector<int64_t> dense = {};
  int64_t depth = 0, alpha = 0;
  std::vector<double> mean = {}, deviation = {};

  ImageShape images() const { return {.channels = channels, .height = height, .width = width}; }
  PixelStatistics statistics() const { return {.mean = mean, .deviation = deviation}; }

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("net", net, "which net", kRequired);
    visit("channels", channels, "of an image", required(in_range(1, 4096)));
    visit("height", height, "rows of an image", required(in_range(1, 16384)));
    visit("width", width, "columns of an image", required(in_range(1, 16384)));
    visit("classes", classes, "what an image may show", required(in_range(2, 65536)));
    visit("first_channels", first_channels, "of the first convolution",
          required(in_range(1, 65536)));
    visit("norm_groups", norm_groups, "groups of a normalisation", required(in_range(1, 65536)));
    visit("pixels", pixels, "height and width to which images are scaled; 0: as they are",
          required(in_range(0, 16384)));
    visit("dense", dense, "vgg16: widths of the dense layers before the last", kRequired);
    visit("depth", depth, "pyramidnet: layers, 6 n + 2; else 0", required(in_range(0, 65536)));
    visit("alpha", alpha, "pyramidnet: channels that all blocks add; else 0",
          required(in_range(0, 65536)));
    visit("mean", mean, "of each channel, which is subtracted", kRequired);
    visit("deviation", deviation, "of each channel, by which the rest is divided", kRequired);
  }
  bool operator==(const ConvNetConfig&) const = default;
};

// The `model_type` in the config.json of such a net.
inline constexpr const char* kConvNetType = "farstep_convnet";

// Returns the shape that a run's `model.images` asks for, for such images. Fields of another net
// are ignored; means and deviations are left empty.
ConvNetConfig resolve(const ImageModelConfig& model, const ImageShape& images, int64_t classes);

// Returns whether a config.json describes such a net.
bool is_convnet(const Json& config);
// Returns the net that it describes. Throws DataError with `file` if it has other members, or
// values that no net has.
ConvNetConfig convnet_from_json(const Json& config, const std::string& file);
Json convnet_to_json(const ConvNetConfig& config);

}  // namespace farstep
