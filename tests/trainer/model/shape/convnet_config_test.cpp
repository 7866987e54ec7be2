#include "trainer/model/shape/convnet_config.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

using Catch::Contains;

namespace {

constexpr ImageShape kImages{1, 8, 8};

ConvNetConfig net_of(const ImageModelConfig& model) {
  auto net = resolve(model, kImages, 4);
  net.mean = net.deviation = {0.25};
  return net;
}

}  // namespace

TEST_CASE("presets take the shape from the images, and fields replace single values") {
  const auto net = net_of({});
  CHECK(net.net == ImageNet::kResNet18);
  CHECK(net.images() == kImages);
  CHECK(net.classes == 4);
  CHECK(net.first_channels == 64);
  CHECK(net_of({.width = 16}).first_channels == 16);
  CHECK(net_of({.norm_groups = 2}).norm_groups == 2);
  const auto pyramid = net_of({.preset = ImageNet::kPyramidNet, .alpha = 9});
  CHECK(pyramid.first_channels == 16);
  CHECK(pyramid.depth == 110);
  CHECK(pyramid.alpha == 9);
  CHECK(net_of({.preset = ImageNet::kVgg16, .dense = {{}}}).dense.empty());
  CHECK(net_of({.preset = ImageNet::kVgg16, .pixels = 224}).dense ==
        std::vector<int64_t>{4096, 4096});
}

TEST_CASE("a net that a checkpoint describes is the one that was described") {
  for (const auto& model :
       {ImageModelConfig{}, ImageModelConfig{.preset = ImageNet::kVgg16, .pixels = 12},
        ImageModelConfig{.preset = ImageNet::kPyramidNet, .width = 3, .depth = 14}}) {
    const auto net = net_of(model);
    const auto json = convnet_to_json(net);
    CHECK(is_convnet(json));
    CHECK(convnet_from_json(Json::parse(json.dump()), "config.json") == net);
  }
}

TEST_CASE("a description with other members is refused by its file") {
  const auto json = convnet_to_json(net_of({}));
  for (const std::string name : {"net", "classes", "mean"}) {
    auto without = json;
    without.erase(name);
    CHECK_THROWS_WITH(convnet_from_json(without, "c.json"), Contains("c.json: " + name));
    CHECK_THROWS_AS(convnet_from_json(without, "c.json"), DataError);
  }
  const std::vector<std::pair<std::string, Json>> wrong = {{"mean", {0.1, 0.2}},
                                                           {"deviation", Json::array()},
                                                           {"dense", {7, 0}},
                                                           {"first_channels", 0},
                                                           {"height", 1 << 20}};
  for (const auto& [name, value] : wrong) {
    auto other = json;
    other[name] = value;
    CHECK_THROWS_WITH(convnet_from_json(other, "c.json"), Contains("c.json: " + name));
  }
  auto pyramid = convnet_to_json(net_of({.preset = ImageNet::kPyramidNet}));
  for (const int64_t depth : {0, 2, 9}) {
    pyramid["depth"] = depth;
    CHECK_THROWS_WITH(convnet_from_json(pyramid, "c.json"), Contains("c.json: depth: must be"));
  }
  auto more = json;
  more["layers"] = 7;
  CHECK_THROWS_WITH(convnet_from_json(more, "c.json"), Contains("c.json") && Contains("layers"));
  CHECK_FALSE(is_convnet(Json{{"model_type", "llama"}}));
  CHECK_FALSE(is_convnet(Json::object()));
}

}  // namespace farstep
