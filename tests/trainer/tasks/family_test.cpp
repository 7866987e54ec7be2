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
  CHECK(family_of(of_tokens.run).check_data(of_tokens.at()).text == "62 windows of 16 tokens");
  const auto found = family_of(of_images.run).check_data(of_images.at()).text;
  CHECK_THAT(found, Catch::StartsWith("64 images, less mean 0.3"));
}

TEST_CASE("a language model's layout needs no data and a net's does") {
  RunConfig language;
  Site of_tokens(language, "/nowhere"), of_images(small_image_run(), "/nowhere");
  CHECK_FALSE(family_of(of_tokens.run).layout(of_tokens.at()).empty());
  CHECK_FALSE(of_tokens.data.is_open());
  CHECK_THROWS_AS(family_of(of_images.run).layout(of_images.at()), DataError);
}

TEST_CASE("a site without data makes the same task by what it is told of another's") {
  const SmallTokens tokens;
  const SmallImages images;
  RunConfig language;
  language.model.layers = 1;
  language.data.sequence_length = 16;
  auto run_of_images = small_image_run();
  run_of_images.data.images.deviation = {0.3};
  Site of_tokens(language, tokens.path()), of_images(run_of_images, images.path());
  for (auto* site : {&of_tokens, &of_images}) {
    Site without(site->run, "");
    const auto& family = family_of(site->run);
    without.data.learn(Json::parse(family.data_facts(site->at()).dump()));
    CHECK(num_parameters(family.layout(without.at())) == num_parameters(family.layout(site->at())));
    const auto task = family.make_task(site->at()), told = family.make_task(without.at());
    CHECK(told->config_text() == task->config_text());
    // What one reads is what the other expects.
    const auto form = told->example_form();
    const auto batch = task->training().read(std::vector<int64_t>{0, 3, 1});
    CHECK(form.text == batch.view.text);
    CHECK(3 * form.targets == batch.view.targets);
    REQUIRE(form.parts.size() == batch.view.parts.size());
    for (std::size_t part = 0; part < form.parts.size(); ++part) {
      CHECK(form.parts[part].dtype == batch.view.parts[part].dtype);
      CHECK(form.parts[part].shape == batch.view.parts[part].shape);
      CHECK(3 * form.parts[part].row_bytes() == batch.view.parts[part].bytes.size());
    }
    CHECK_FALSE(unfit_value(form, batch.view));
  }
}

TEST_CASE("a task bounds the values that index its model") {
  const SmallImages images;
  RunConfig language;
  language.model.vocabulary = 77;
  Site of_tokens(language, ""), of_images(small_image_run(), images.path());
  CHECK(family_of(language).make_task(of_tokens.at())->example_form().parts.at(0).num_values == 77);
  const auto form = family_of(of_images.run).make_task(of_images.at())->example_form();
  CHECK(form.parts.at(1).num_values == 4);
}

}  // namespace farstep
