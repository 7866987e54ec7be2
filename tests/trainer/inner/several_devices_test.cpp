#include <ATen/Parallel.h>

#include <numeric>

#include "tests/support/catch.h"
#include "tests/trainer/inner/small_training.h"
#include "trainer/base/error.h"
#include "trainer/inner/inner_step.h"

namespace farstep {

namespace {

std::vector<std::unique_ptr<Replica>> cpu_replicas(std::size_t count) {
  std::vector<std::unique_ptr<Replica>> replicas;
  while (replicas.size() < count) {
    replicas.push_back(std::make_unique<Replica>([] {
      at::set_num_threads(1);
      return std::make_unique<Llama>(kSmallConfig, at::kCPU, ComputeType::kFP32);
    }));
  }
  return replicas;
}

// What five steps with these shares make of the small model.
struct Trained {
  std::vector<double> losses, norms;
  at::Tensor values;
};

Trained train(const std::vector<int64_t>& shares, int64_t micro_batch) {
  auto model = small_model();
  InnerStep step(model, inner_config(), cpu_replicas(shares.size() - 1));
  const auto sequences = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  Trained trained;
  for (int64_t number = 0; number < 5; ++number) {
    const auto result = step.run(some_batch(sequences, 9, number), shares, micro_batch, 0.5);
    trained.losses.push_back(result.loss);
    trained.norms.push_back(result.gradient_norm);
    CHECK(result.device_seconds.size() == shares.size());
    CHECK(result.tokens == sequences * 9);
  }
  trained.values = model.parameters().values().clone();
  return trained;
}

class Throws : public TrainableModel {
 public:
  Throws() : parameters_(kSmallConfig, at::kCPU) {}
  Parameters& parameters() override { return parameters_; }
  at::Tensor summed_loss(const at::Tensor& /*tokens*/) override { return at::zeros({}); }
  at::Tensor backpropagate(const at::Tensor& /*tokens*/, const GradientPass& /*pass*/) override {
    throw InternalError("this device is broken");
  }

 private:
  Parameters parameters_;
};

}  // namespace

TEST_CASE("several devices train as one device with the whole batch does") {
  const auto whole = train({5}, 5);
  for (const auto& shares : std::vector<std::vector<int64_t>>{
           {3, 2}, {1, 4}, {5, 0}, {0, 5}, {2, 2, 1}, {1, 0, 4}, {1, 1, 1, 1, 1}}) {
    for (const int64_t micro_batch : {1, 2, 5}) {
      const auto split = train(shares, micro_batch);
      for (std::size_t i = 0; i < whole.losses.size(); ++i) {
        CHECK(split.losses[i] == Approx(whole.losses[i]).epsilon(1e-5));
        CHECK(split.norms[i] == Approx(whole.norms[i]).epsilon(1e-4));
      }
      const double error =
          ((split.values - whole.values).norm() / whole.values.norm()).item<double>();
      CHECK(error < 1e-5);
    }
  }
}

TEST_CASE("the same shares give the same bits twice") {
  CHECK(at::equal(train({2, 3}, 2).values, train({2, 3}, 2).values));
}

TEST_CASE("shares that are not the batch are a bug") {
  auto model = small_model();
  InnerStep step(model, inner_config(), cpu_replicas(1));
  const auto batch = some_batch(3, 9, 1);
  CHECK_THROWS_AS(step.run(batch, std::vector<int64_t>{3}, 1, 0), InternalError);
  CHECK_THROWS_AS(step.run(batch, std::vector<int64_t>{1, 1}, 1, 0), InternalError);
  CHECK_THROWS_AS(step.run(batch, std::vector<int64_t>{1, 1, 1}, 1, 0), InternalError);
}

TEST_CASE("what fails on a device ends the step and leaves the model as it was") {
  auto model = small_model();
  const auto before = model.parameters().values().clone();
  std::vector<std::unique_ptr<Replica>> replicas;
  replicas.push_back(std::make_unique<Replica>([] { return std::make_unique<Throws>(); }));
  InnerStep step(model, inner_config(), std::move(replicas));
  CHECK_THROWS_WITH(step.run(some_batch(4, 9, 1), std::vector<int64_t>{2, 2}, 1, 0),
                    "this device is broken");
  CHECK(at::equal(model.parameters().values(), before));
}

TEST_CASE("a device that cannot be opened says so where its replica is made") {
  CHECK_THROWS_AS(Replica([]() -> std::unique_ptr<TrainableModel> { throw ConfigError("no GPU"); }),
                  ConfigError);
}

}  // namespace farstep
