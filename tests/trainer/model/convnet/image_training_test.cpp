// A convolutional net learns Fashion-MNIST through the inner step that trains language models.
#include <ATen/Parallel.h>

#include <filesystem>
#include <iostream>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/idx_files.h"
#include "tests/trainer/model/convnet/share_named.h"
#include "trainer/config/json_fields.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/convnet/image_task.h"
#include "trainer/model/evaluate.h"

namespace farstep {

namespace {

// Where the package dataset-fashion-mnist puts them.
const std::filesystem::path kFashionMnist = "/usr/share/datasets/fashion-mnist";

InnerConfig config() {
  InnerConfig config;
  config.peak_learning_rate = 3e-3;
  config.adamw.weight_decay = 0.01;
  return config;
}

// The numbers of step `step`'s examples: a walk through all of them by a stride without a common
// factor.
std::vector<int64_t> examples_of(int64_t step, int64_t batch, int64_t examples) {
  std::vector<int64_t> numbers(static_cast<std::size_t>(batch));
  for (int64_t i = 0; i < batch; ++i) {
    numbers[static_cast<std::size_t>(i)] = (step * batch + i) * 7919 % examples;
  }
  return numbers;
}

// Images of 4 x 4 whose one bright row is their label.
class BrightRows {
 public:
  explicit BrightRows(int64_t count) {
    std::string pixels, labels;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t row = 0; row < 4; ++row)
        pixels += std::string(4, row == i % 4 ? '\xff' : '\x20');
      labels += static_cast<char>(i % 4);
    }
    write_file(folder_ / "images", idx_text({count, 4, 4}, pixels));
    write_file(folder_ / "labels", idx_text({count}, labels));
  }
  ImageSet set() const { return {folder_ / "images", folder_ / "labels"}; }

 private:
  TemporaryFolder folder_;
};

// A site of that many devices that learns rows; returns the net's values after twenty steps.
at::Tensor learned_rows(std::size_t devices, int64_t micro_batch) {
  const auto set = BrightRows(64).set();
  const ImageTask task(set, set);
  const auto model = task.make_model(at::kCPU, false);
  task.set_start_values(model->parameters(), 1);
  std::vector<std::unique_ptr<Replica>> replicas;
  while (replicas.size() + 1 < devices) {
    replicas.push_back(std::make_unique<Replica>([&] {
      at::set_num_threads(1);
      return task.make_model(at::kCPU, false);
    }));
  }
  InnerStep inner(*model, config(), std::move(replicas));
  std::vector<int64_t> shares(devices, 12 / static_cast<int64_t>(devices));
  for (int64_t step = 0; step < 20; ++step) {
    const auto batch = set.read(examples_of(step, 12, set.size()));
    const auto result = inner.run(batch.view, shares, micro_batch, 0.5);
    CHECK(result.tokens == 12);
  }
  return model->parameters().values().clone();
}

}  // namespace

TEST_CASE("the net learns rows in any micro-batches and on several devices") {
  at::set_num_threads(1);
  const auto wanted = learned_rows(1, 12);
  for (const auto& [devices, micro_batch] : {std::pair{1, 5}, {2, 6}, {3, 3}}) {
    CHECK(at::allclose(learned_rows(static_cast<std::size_t>(devices), micro_batch), wanted, 1e-2,
                       1e-4));
  }
}

TEST_CASE("validation in parts adds up to that of the whole set") {
  const auto set = BrightRows(23).set();
  const ImageTask task(set, set);
  const auto model = task.make_model(at::kCPU, false);
  task.set_start_values(model->parameters(), 2);
  const auto whole = evaluate(*model, task.validation(), {});
  CHECK(whole.targets == 23);
  Validation sum;
  for (int64_t part = 0; part < 3; ++part) {
    const auto one =
        evaluate(*model, task.validation(), {.part = part, .num_parts = 3, .batch = 4});
    sum.loss_sum += one.loss_sum;
    sum.targets += one.targets;
  }
  CHECK(sum.targets == whole.targets);
  CHECK(sum.loss_sum == Approx(whole.loss_sum));
  CHECK(evaluate(*model, task.validation(), {.examples = 7}).targets == 7);
}

TEST_CASE("the net has the shape of the images, and a checkpoint tells it") {
  const auto set = BrightRows(8).set();
  const auto json = Json::parse(ImageTask(set, set).config_text());
  CHECK(json["model_type"] == "farstep_convnet");
  CHECK(json["height"] == 4);
  CHECK(json["classes"] == 4);
}

TEST_CASE("the net learns Fashion-MNIST through the inner step") {
  if (!std::filesystem::exists(kFashionMnist)) {
    std::cout << "SKIPPED: " << kFashionMnist << " is not there (scripts/setup.sh --tests)\n";
    return;
  }
  at::set_num_threads(1);
  const ImageSet training(kFashionMnist / "train-images-idx3-ubyte.gz",
                          kFashionMnist / "train-labels-idx1-ubyte.gz");
  const ImageSet validation(kFashionMnist / "t10k-images-idx3-ubyte.gz",
                            kFashionMnist / "t10k-labels-idx1-ubyte.gz");
  const ImageTask task(training, validation);
  REQUIRE(training.size() == 60'000);
  const auto model = task.make_model(at::kCPU, false);
  task.set_start_values(model->parameters(), 1);
  InnerStep inner(*model, config());
  constexpr int64_t kSteps = 300, kBatch = 64;
  const ValidationPart part{.examples = 2000};
  const auto before = evaluate(*model, validation, part);
  CHECK(share_named(*model, validation, 2000) < 0.3);
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto batch = training.read(examples_of(step, kBatch, training.size()));
    inner.run(batch.view, kBatch, static_cast<double>(step) / kSteps);
  }
  CHECK(share_named(*model, validation, 2000) > 0.8);
  CHECK(evaluate(*model, validation, part).loss() < before.loss() / 3);
}

}  // namespace farstep
