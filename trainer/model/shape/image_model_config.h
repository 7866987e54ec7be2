// The net of an image classifier (`model.images` of a run file).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/config/fields.h"

namespace farstep {

enum class ImageNet { kResNet18, kVgg16, kPyramidNet };
inline std::span<const std::string_view> enum_names(ImageNet) {
  static constexpr std::array<std::string_view, 3> kNames{"resnet18", "vgg16", "pyramidnet"};
  return kNames;
}

// Of dense layers.
inline constexpr Rules kDenseWidths = in_range(1, 1 << 24);

// A preset, with single fields replaced. Null members take the preset's value.
struct ImageModelConfig {
  ImageNet preset = ImageNet::kResNet18;
  std::optional<int64_t> width = {}, norm_groups = {}, pixels = {};
  std::optional<std::vector<int64_t>> dense = {};
  std::optional<int64_t> depth = {}, alpha = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("preset", preset, "the net, which the members below change");
    visit("width", width,
          "channels of the first convolution, of which the others are multiples; null: 64, of "
          "pyramidnet 16",
          in_range(1, 65536));
    visit("norm_groups", norm_groups, "groups of channels that are normalised together; null: 8",
          in_range(1, 65536));
    visit("pixels", pixels,
          "height and width to which the net scales its images; null: as they are",
          in_range(1, 16384));
    visit("dense", dense,
          "vgg16: widths of the dense layers before the last; null: [4096, 4096] for images of 224 "
          "pixels or more, else [512]");
    visit("depth", depth, "pyramidnet: layers, 6 n + 2; null: 110", in_range(8, 65536));
    visit("alpha", alpha, "pyramidnet: channels that all blocks together add; null: 48",
          in_range(0, 65536));
  }
};

}  // namespace farstep
