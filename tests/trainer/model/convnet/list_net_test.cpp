#include "trainer/model/convnet/convnet.h"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"

namespace farstep {

namespace {

ConvNetConfig net_of(ImageNet net, const ImageShape& images, int64_t classes,
                     const ImageModelConfig& changes = {}) {
  auto model = changes;
  model.preset = net;
  return resolve(model, images, classes);
}

int64_t parameters_of(const ConvNetConfig& config) {
  return num_parameters(list_net(config).layout);
}

constexpr ImageShape kGrey{1, 28, 28}, kColour{3, 32, 32}, kLarge{3, 224, 224};

}  // namespace

// Counted by hand from the papers' tables, or published. Group norm has as many parameters as batch
// norm.
TEST_CASE("nets have as many parameters as published") {
  CHECK(parameters_of(net_of(ImageNet::kResNet18, kColour, 10)) == 11'173'962);
  CHECK(parameters_of(net_of(ImageNet::kResNet18, kGrey, 10)) == 11'173'962 - 2 * 64 * 9);
  // 138,357,544, and for each of 4224 channels a factor more.
  CHECK(parameters_of(net_of(ImageNet::kVgg16, kLarge, 1000)) == 138'357'544 + 4224);
  // 1.7M, 3.8M and 28.3M in the paper.
  const auto pyramid = [](int64_t alpha) {
    return parameters_of(net_of(ImageNet::kPyramidNet, kColour, 10, {.alpha = alpha}));
  };
  CHECK(pyramid(48) == 1'739'730);
  CHECK(pyramid(84) == 3'855'054);
  CHECK(pyramid(270) == 28'485'477);
}

TEST_CASE("the first dense layer of VGG-16 has most of its parameters, and small images few") {
  const auto largest = [](const ConvNetConfig& config) {
    return std::ranges::max(list_net(config).layout, {}, &ParameterSpec::size);
  };
  const auto published = largest(net_of(ImageNet::kVgg16, kLarge, 1000));
  CHECK(published.name == "dense0.weight");
  CHECK(published.size() == 102'760'448);
  // Small images that are scaled are large ones, in a narrow net too.
  const auto scaled = largest(
      net_of(ImageNet::kVgg16, kColour, 10, {.width = 8, .pixels = 224, .dense = {{4096, 64}}}));
  CHECK(scaled.name == "dense0.weight");
  CHECK(scaled.size() == 64 * 49 * 4096);
  CHECK(net_of(ImageNet::kVgg16, kGrey, 10).dense == std::vector<int64_t>{512});
}

TEST_CASE("weights begin with the variance 2 / inputs, norms at 1, and ResNet's branches at 0") {
  for (const auto preset : {ImageNet::kResNet18, ImageNet::kVgg16, ImageNet::kPyramidNet}) {
    ConvNet net(net_of(preset, kGrey, 10,
                       {.width = preset == ImageNet::kPyramidNet ? 16 : 8,
                        .depth = preset == ImageNet::kPyramidNet ? std::optional<int64_t>(14)
                                                                 : std::nullopt}),
                at::kCPU, ComputeType::kFP32);
    net.parameters().initialise(1);
    for (const auto& spec : net.parameters().layout()) {
      INFO(spec.name);
      const auto& leaf = net.parameters().leaf(spec.name);
      const bool is_matrix = spec.shape.size() > 1;
      CHECK(spec.decays == is_matrix);
      CHECK(spec.is_hidden_matrix == (is_matrix && spec.name != "head.weight"));
      if (!is_matrix) {
        const bool is_bias = spec.name.ends_with("bias");
        const bool is_last =
            preset == ImageNet::kResNet18 && spec.name.find(".norm2") != std::string::npos;
        CHECK(at::all(leaf == (is_bias || is_last ? 0 : 1)).item<bool>());
        continue;
      }
      if (spec.size() < 500) continue;  // too few for a deviation
      const double inputs = static_cast<double>(spec.size() / spec.shape.front());
      const double gain = spec.name == "head.weight" ? 1 : 2;
      CHECK(leaf.std().item<double>() == Approx(std::sqrt(gain / inputs)).epsilon(0.1));
    }
  }
}

TEST_CASE("products of ResNet-18 are the operations that its paper counts") {
  const auto operations = [](const ImageShape& images) {
    double sum = 0;
    for (const auto& [inner, columns, positions] :
         list_net(net_of(ImageNet::kResNet18, images, 10)).products) {
      sum += static_cast<double>(inner * columns * positions);
    }
    return sum;
  };
  CHECK(operations(kColour) == Approx(0.556e9).epsilon(0.01));
  CHECK(operations({3, 224, 224}) / operations({3, 112, 112}) == Approx(4).epsilon(0.01));
}

}  // namespace farstep
