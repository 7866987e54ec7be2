#include "trainer/tasks/family.h"

#include "tests/support/catch.h"
#include "tests/trainer/model/convnet/small_images.h"
#include "tests/trainer/tasks/small_tokens.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// A run at a site with data in a folder.
struct Site {
  Site(const RunConfig& wanted, const std::filesystem::path& folder)
      : run(wanted), data(folder, run.model.family) {
    config.data = folder.string();
  }
  SiteOfRun at() { return {config, run, source, data}; }

  SiteConfig config;
  RunConfig run;
  const std::string source = "run.json";
  SiteData data;
};

}  // namespace

TEST_CASE("each family makes a task whose model has the layout that was checked") {
  const SmallTokens tokens;
  const SmallImages images;
  RunConfig language;
  language.model.layers = 1;
  language.data.sequence_length = 16;
  Site of_tokens(language, tokens.path()), of_images(small_image_run(), images.path());
  for (auto* site : {&of_tokens, &of_images}) {
    const auto& family = family_of(site->run);
    const auto layout = family.layout(site->at());
    const auto task = family.make_task(site->at());
    const auto model = task->make_model(at::kCPU, false);
    CHECK(model->parameters().size() == num_parameters(layout));
    CHECK(model->parameters().layout().back().name == layout.back().name);
    CHECK(task->training().size() > 0);
  }
  CHECK(family_of(of_tokens.run).check_data(of_tokens.at()) == "62 windows of 16 tokens");
  const auto found = family_of(of_images.run).check_data(of_images.at());
  CHECK_THAT(found, Catch::StartsWith("64 images, less mean 0.3"));
}

TEST_CASE("a language model's layout needs no data and a net's does") {
  RunConfig language;
  Site of_tokens(language, "/nowhere"), of_images(small_image_run(), "/nowhere");
  CHECK_FALSE(family_of(of_tokens.run).layout(of_tokens.at()).empty());
  CHECK_FALSE(of_tokens.data.is_open());
  CHECK_THROWS_AS(family_of(of_images.run).layout(of_images.at()), DataError);
}

}  // namespace farstep
