#include "trainer/model/convnet/image_task.h"

#include <ATen/Parallel.h>

#include "tests/support/catch.h"
#include "tests/trainer/model/convnet/small_images.h"
#include "trainer/base/error.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/evaluate.h"

namespace farstep {

namespace {

using Catch::Contains;

// The numbers of step `step`'s examples: a walk through all of them by a stride without a common
// factor.
std::vector<int64_t> examples_of(int64_t step, int64_t batch, int64_t examples) {
  std::vector<int64_t> numbers(static_cast<std::size_t>(batch));
  for (int64_t i = 0; i < batch; ++i) {
    numbers[static_cast<std::size_t>(i)] = (step * batch + i) * 7919 % examples;
  }
  return numbers;
}

// The task of a run on these images.
ImageTask task_of(const RunConfig& run, const std::shared_ptr<const ImageData>& data) {
  return {run, convnet_of_run(run, "run.json", *data), data};
}

// A site of that many devices that learns rows; returns the net's values after twenty steps.
at::Tensor learned_rows(std::size_t devices, int64_t micro_batch) {
  const SmallImages folder;
  const auto run = small_image_run();
  const auto task = task_of(run, folder.data());
  const auto model = task.make_model(at::kCPU, false);
  task.set_start_values(model->parameters(), 1);
  std::vector<std::unique_ptr<Replica>> replicas;
  while (replicas.size() + 1 < devices) {
    replicas.push_back(std::make_unique<Replica>([&] {
      at::set_num_threads(1);
      return task.make_model(at::kCPU, false);
    }));
  }
  InnerStep inner(*model, run.inner, std::move(replicas));
  const std::vector<int64_t> shares(devices, 12 / static_cast<int64_t>(devices));
  for (int64_t step = 0; step < 20; ++step) {
    const auto batch = task.training().read(examples_of(step, 12, task.training().size()));
    const auto result = inner.run(batch.view, shares, micro_batch, 0.5);
    CHECK(result.tokens == 12);
  }
  return model->parameters().values().clone();
}

}  // namespace

// Batch norm would fail here: it normalises over the images of a micro-batch.
TEST_CASE("the net learns the same in any micro-batches and on several devices") {
  at::set_num_threads(1);
  const auto wanted = learned_rows(1, 12);
  for (const auto& [devices, micro_batch] : {std::pair{1, 5}, {1, 1}, {2, 6}, {3, 3}}) {
    CHECK(at::allclose(learned_rows(static_cast<std::size_t>(devices), micro_batch), wanted, 1e-2,
                       1e-3));
  }
}

TEST_CASE("validation in parts adds up to that of the whole set") {
  const SmallImages folder;
  const auto run = small_image_run();
  const auto task = task_of(run, folder.data());
  const auto model = task.make_model(at::kCPU, false);
  task.set_start_values(model->parameters(), 2);
  const auto whole = evaluate(*model, task.validation(), {});
  CHECK(whole.targets == 23);
  Validation sum;
  int64_t hits = 0;
  for (int64_t part = 0; part < 3; ++part) {
    const auto one =
        evaluate(*model, task.validation(), {.part = part, .num_parts = 3, .batch = 4});
    sum.loss_sum += one.loss_sum;
    sum.targets += one.targets;
    hits += one.hits.value();
  }
  CHECK(sum.targets == whole.targets);
  CHECK(hits == whole.hits);
  CHECK(whole.accuracy() == Approx(static_cast<double>(hits) / 23));
  CHECK(sum.loss_sum == Approx(whole.loss_sum));
  CHECK(evaluate(*model, task.validation(), {.examples = 7}).targets == 7);
  // A site without a part has counted nothing.
  CHECK_FALSE(evaluate(*model, task.validation(), {.part = 2, .num_parts = 3, .examples = 1}).hits);
}

TEST_CASE("the run's own means and deviations replace those of the images") {
  const SmallImages folder;
  auto run = small_image_run();
  const auto data = folder.data();
  CHECK(convnet_of_run(run, "run.json", *data).statistics().deviation ==
        pixel_statistics(data->training).deviation);
  run.data.images.mean = {0.25};
  run.data.images.deviation = {0.5};
  const auto task = task_of(run, data);
  const auto json = Json::parse(task.config_text());
  CHECK(json["mean"] == std::vector<double>{0.25});
  const auto batch = task.validation().read(std::vector<int64_t>{0});
  const auto& images = *static_cast<const ImageBatch*>(batch.memory.get());
  CHECK(images.images[0] == Approx((1 - 0.25) / 0.5));  // bright
  run.data.images.deviation = {0.5, 0.5, 0.5};
  CHECK_THROWS_WITH(task_of(run, data),
                    Contains("run.json: data.images.deviation: has 3 values; the images have 1"));
}

TEST_CASE("training images are varied by the run's seed and validation images are not") {
  const SmallImages folder;
  auto run = small_image_run();
  run.data.images = {.crop_padding = 2, .flip = true};
  const auto values = [&](const Examples& examples) {
    const auto batch = examples.draw(std::vector<Draw>{{0, 0}, {1, 0}, {2, 0}, {3, 0}});
    return static_cast<const ImageBatch*>(batch.memory.get())->images;
  };
  const auto task = task_of(run, folder.data()), same = task_of(run, folder.data());
  CHECK(values(task.training()) == values(same.training()));
  run.seed += 1;
  const auto other = task_of(run, folder.data());
  CHECK(values(other.training()) != values(task.training()));
  CHECK(values(other.validation()) == values(task.validation()));
  run.data.images = {.crop_padding = 0, .flip = false};
  const auto plain = task_of(run, folder.data());
  CHECK(values(plain.training()) == values(plain.validation()));  // the same rows in both splits
}

}  // namespace farstep
