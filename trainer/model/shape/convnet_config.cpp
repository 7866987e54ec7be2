#include "trainer/model/shape/convnet_config.h"

#include <algorithm>

namespace farstep {

namespace {

constexpr const char* kTypeMember = "model_type";
constexpr int64_t kFirstChannels = 64;  // of ResNet-18 and VGG-16
// The smallest PyramidNet of which the paper has results (Han et al. 2017).
constexpr int64_t kPyramidFirstChannels = 16, kPyramidDepth = 110, kPyramidAlpha = 48;
// Groups of 8 channels in the narrowest layer of ResNet-18 and VGG-16.
constexpr int64_t kNormGroups = 8;

// Checks what the fields' own limits do not.
void check_values(const ConvNetConfig& net, const std::string& file) {
  const auto check = [&](bool is_right, const char* member, const char* why) {
    if (!is_right) JsonPath{file, member}.fail(why);
  };
  check(std::ranges::all_of(net.dense,
                            [](int64_t width) { return kDenseWidths.allow(double(width)); }),
        "dense", "has a width that no layer has");
  const bool is_pyramid = net.net == ImageNet::kPyramidNet;
  check(!is_pyramid || (net.depth >= 8 && net.depth % 6 == 2), "depth", "must be 6 n + 2");
  const auto channels = static_cast<std::size_t>(net.channels);
  check(net.mean.size() == channels, "mean", "has not one value for each channel");
  check(net.deviation.size() == channels, "deviation", "has not one value for each channel");
}

// Widths of VGG-16's dense layers as published, for images of 224 pixels; and as it is fitted to
// images of 32, of which one pixel is left before the dense layers (Liu and Deng 2015).
std::vector<int64_t> vgg_dense(int64_t pixels) {
  constexpr int64_t kPublishedPixels = 224;
  if (pixels >= kPublishedPixels) return {4096, 4096};
  return {512};
}

}  // namespace

ConvNetConfig resolve(const ImageModelConfig& model, const ImageShape& images, int64_t classes) {
  const bool is_pyramid = model.preset == ImageNet::kPyramidNet;
  ConvNetConfig config{
      .net = model.preset,
      .channels = images.channels,
      .height = images.height,
      .width = images.width,
      .classes = classes,
      .first_channels = model.width.value_or(is_pyramid ? kPyramidFirstChannels : kFirstChannels),
      .norm_groups = model.norm_groups.value_or(kNormGroups),
      .pixels = model.pixels.value_or(0)};
  if (is_pyramid) {
    config.depth = model.depth.value_or(kPyramidDepth);
    config.alpha = model.alpha.value_or(kPyramidAlpha);
  }
  if (model.preset == ImageNet::kVgg16) {
    const int64_t side = model.pixels.value_or(std::min(images.height, images.width));
    config.dense = model.dense.value_or(vgg_dense(side));
  }
  return config;
}

bool is_convnet(const Json& config) {
  const auto type = config.find(kTypeMember);
  return type != config.end() && *type == kConvNetType;
}

ConvNetConfig convnet_from_json(const Json& config, const std::string& file) {
  auto members = config;
  members.erase(kTypeMember);
  try {
    auto net = read_json<ConvNetConfig>(members, file);
    check_values(net, file);
    return net;
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

Json convnet_to_json(const ConvNetConfig& config) {
  Json json{{kTypeMember, kConvNetType}};
  json.update(to_json(config));
  return json;
}

}  // namespace farstep
