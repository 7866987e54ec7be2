#include "trainer/settings/family_check.h"

#include "tests/support/catch.h"
#include "trainer/config/config_file.h"

namespace farstep {

namespace {

using Catch::Contains;

RunConfig run_with(const std::vector<std::string>& overrides) {
  Json json{{"name", "r"}, {"sites", {{{"name", "a"}}}}};
  for (const auto& text : overrides) apply_override(json, text);
  return run_config_from_json(json, "r.json");
}

constexpr const char* kImages = "model.family=images";

}  // namespace

TEST_CASE("a run of images has one target an example and a language run a sequence's tokens") {
  const auto language = run_with({"data.sequence_length=64"});
  CHECK(language.targets_per_example() == 64);
  CHECK(language.target_name() == "tokens");
  const auto images = run_with({kImages});
  CHECK(images.targets_per_example() == 1);
  CHECK(images.target_name() == "images");
}

TEST_CASE("every net takes its own members") {
  CHECK_NOTHROW(run_with({kImages, "model.images.width=8", "model.images.norm_groups=2",
                          "model.images.pixels=64", "data.images.flip=false",
                          "data.images.mean=[0.5]", "data.order=sequential"}));
  CHECK_NOTHROW(run_with({kImages, "model.images.preset=vgg16", "model.images.dense=[4096,64,8]"}));
  CHECK_NOTHROW(run_with({kImages, "model.images.preset=vgg16", "model.images.dense=[]"}));
  CHECK_NOTHROW(run_with({kImages, "model.images.preset=pyramidnet", "model.images.depth=20",
                          "model.images.alpha=0"}));
}

TEST_CASE("members of another family or net are refused by path and remedy") {
  struct Row {
    std::vector<std::string> overrides;
    std::string begin, remedy;
  };
  const std::vector<Row> table = {
      {{kImages, "model.preset=60m"}, "r.json: model.preset: is of a language", "model.images"},
      {{kImages, "model.layers=3"}, "r.json: model.layers: is of a language", "model.images"},
      {{kImages, "model.from=x"}, "r.json: model.from: is of a language", "model.images"},
      {{kImages, "data.sequence_length=64"}, "r.json: data.sequence_length", "remove it"},
      {{kImages, "inner.compute=fp8"}, "r.json: inner.compute: is fp8", "bf16 or fp32"},
      {{kImages, "model.images.dense=[7]"},
       "r.json: model.images.dense: is no member of resnet18",
       "remove it"},
      {{kImages, "model.images.preset=vgg16", "model.images.depth=20"},
       "r.json: model.images.depth: is no member of vgg16",
       "remove it"},
      {{kImages, "model.images.preset=vgg16", "model.images.dense=[4,0]"},
       "r.json: model.images.dense[1]: is 0",
       "must be from 1"},
      {{kImages, "model.images.preset=pyramidnet", "model.images.depth=21"},
       "r.json: model.images.depth: is 21",
       "6 n + 2"},
      {{kImages, "model.images.preset=resnet34"}, "r.json: model.images.preset", "resnet18"},
      {{kImages, "model.images.width=0"}, "r.json: model.images.width", "from 1"},
      {{kImages, "data.images.deviation=[0.5,0]"}, "r.json: data.images.deviation", "not above 0"},
      {{"model.family=image"}, "r.json: model.family", "images"},
      {{"model.images.width=8"},
       "r.json: model.images.width: is for runs of images",
       "model.family"},
      {{"data.images.crop_padding=2"},
       "r.json: data.images.crop_padding: is for runs of images",
       "model.family"},
  };
  for (const auto& row : table) {
    INFO(row.overrides.back());
    CHECK_THROWS_WITH(run_with(row.overrides),
                      Catch::StartsWith(row.begin) && Contains(row.remedy));
  }
}

}  // namespace farstep
