#include "trainer/model/convnet/nets.h"

#include <fmt/format.h>

#include "trainer/base/error.h"

namespace farstep {

namespace {

Feature basic_block(const Layers& layers, const std::string& name, const Feature& x,
                    int64_t channels, int64_t stride) {
  auto y = layers.convolution(name + ".conv1", x, {.outputs = channels, .stride = stride});
  y = relu(layers.norm(name + ".norm1", y));
  y = layers.convolution(name + ".conv2", y, {.outputs = channels});
  y = layers.norm(name + ".norm2", y, /*factor=*/0);
  auto shortcut = x;
  if (stride != 1 || x.channels != channels) {
    shortcut = layers.convolution(name + ".shortcut", x,
                                  {.outputs = channels, .kernel = 1, .stride = stride});
    shortcut = layers.norm(name + ".shortcut_norm", shortcut);
  }
  return relu(add(y, shortcut));
}

Feature pyramid_block(const Layers& layers, const std::string& name, const Feature& x,
                      int64_t channels, int64_t stride) {
  auto y = layers.norm(name + ".norm1", x);
  y = layers.convolution(name + ".conv1", y, {.outputs = channels, .stride = stride});
  y = relu(layers.norm(name + ".norm2", y));
  y = layers.convolution(name + ".conv2", y, {.outputs = channels});
  return add(layers.norm(name + ".norm3", y), stride == 1 ? x : mean_pool(x));
}

}  // namespace

Feature resnet18(const Layers& layers, const Feature& images, const ConvNetConfig& config) {
  auto x = layers.convolution("conv", images, {.outputs = config.first_channels});
  x = relu(layers.norm("norm", x));
  constexpr int kStages = 4, kBlocks = 2;
  for (int stage = 0; stage < kStages; ++stage) {
    for (int block = 0; block < kBlocks; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = basic_block(layers, fmt::format("stage{}.{}", stage, block), x,
                      config.first_channels << stage, stride);
    }
  }
  return layers.head("head", mean(x), config.classes);
}

Feature vgg16(const Layers& layers, const Feature& images, const ConvNetConfig& config) {
  // Times the first channels; a pooling after each row.
  constexpr int64_t kWidths[5][3] = {{1, 1, 0}, {2, 2, 0}, {4, 4, 4}, {8, 8, 8}, {8, 8, 8}};
  auto x = images;
  int number = 0;
  for (const auto& stage : kWidths) {
    for (const int64_t times : stage) {
      if (times == 0) continue;
      x = layers.convolution(fmt::format("conv{}", number), x,
                             {.outputs = times * config.first_channels});
      x = relu(layers.norm(fmt::format("norm{}", number), x));
      ++number;
    }
    x = max_pool(x);
  }
  for (std::size_t i = 0; i < config.dense.size(); ++i) {
    x = relu(layers.dense(fmt::format("dense{}", i), x, config.dense[i]));
  }
  return layers.head("head", x, config.classes);
}

Feature pyramidnet(const Layers& layers, const Feature& images, const ConvNetConfig& config) {
  constexpr int64_t kStages = 3;
  const int64_t blocks = (config.depth - 2) / 2;
  auto x = layers.convolution("conv", images, {.outputs = config.first_channels});
  x = layers.norm("norm", x);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t stage_blocks = blocks / kStages;
    const int64_t stride = block > 0 && block % stage_blocks == 0 ? 2 : 1;
    x = pyramid_block(layers, fmt::format("block{}", block), x,
                      config.first_channels + (block + 1) * config.alpha / blocks, stride);
  }
  x = relu(layers.norm("last_norm", x));
  return layers.head("head", mean(x), config.classes);
}

Feature net(const Layers& layers, const Feature& images, const ConvNetConfig& config) {
  const auto scaled = config.pixels == 0 ? images : scale_to(images, config.pixels);
  switch (config.net) {
    case ImageNet::kResNet18:
      return resnet18(layers, scaled, config);
    case ImageNet::kVgg16:
      return vgg16(layers, scaled, config);
    case ImageNet::kPyramidNet:
      return pyramidnet(layers, scaled, config);
  }
  throw InternalError("no such net");
}

}  // namespace farstep
