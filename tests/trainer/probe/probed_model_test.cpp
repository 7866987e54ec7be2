#include "trainer/probe/probed_model.h"

#include "tests/support/catch.h"
#include "tests/trainer/model/convnet/small_images.h"
#include "trainer/base/error.h"
#include "trainer/inner/inner_step.h"

namespace farstep {

TEST_CASE("a net is probed on random images like those of the site") {
  const SmallImages folder;
  SiteConfig site;
  site.data = folder.path().string();
  const auto run = small_image_run();
  const auto probed = probed_model(site, run, "run.json");
  const auto model = probed->make(at::kCPU, false);
  CHECK(probed->num_parameters() == model->parameters().size());
  model->parameters().initialise(1);
  InnerStep inner(*model, run.inner);
  std::minstd_rand random;
  const auto batch = probed->random_batch(5, random);
  CHECK(batch.view.examples == 5);
  CHECK(inner.run(batch.view, 2, 0).tokens == 5);
  // The first convolution: nine pixels of one channel to four, for each of 64 pixels.
  const auto products = probed->products();
  CHECK(products.front().inner == 9);
  CHECK(products.front().columns == 4);
  CHECK(products.front().times == 64);
  CHECK(probed->rows_per_example() == 64);
  CHECK_THROWS_AS(probed->make(at::kCPU, true), ConfigError);
}

TEST_CASE("a language model is probed on sequences of the run's length") {
  RunConfig run;
  run.model.vocabulary = 50;
  run.model.layers = 1;
  run.data.sequence_length = 7;
  const auto probed = probed_model({}, run, "run.json");
  std::minstd_rand random;
  const auto batch = probed->random_batch(3, random);
  CHECK(batch.view.targets == 21);
  CHECK(probed->rows_per_example() == 7);
  CHECK(probed->products().back().columns == 50);
}

}  // namespace farstep
