#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/trainer/inner/site_training.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

using namespace std::chrono_literals;
using Shares = std::vector<int64_t>;

int64_t sum(const Shares& shares) {
  return std::accumulate(shares.begin(), shares.end(), int64_t{0});
}

// What five steps with these shares make of the small model.
struct Trained {
  std::vector<double> losses, norms;
  at::Tensor values;
};

Trained train(const Shares& shares, int64_t micro_batch,
              ReductionKind reduction = ReductionKind::kBuckets,
              StepKind kind = StepKind::kAutograd) {
  auto config = reducing(reduction);
  config.step = kind;
  SmallSite site(shares.size(), config);
  Trained trained;
  for (int64_t number = 0; number < 5; ++number) {
    const auto result =
        site.step().run(some_batch(sum(shares), 9, number), shares, micro_batch, 0.5);
    trained.losses.push_back(result.loss);
    trained.norms.push_back(result.gradient_norm);
    CHECK(result.device_seconds.size() == shares.size());
    CHECK(result.tokens == sum(shares) * 9);
  }
  trained.values = site.values().clone();
  return trained;
}

// A model that does what a test wants when it is asked for gradients, and then as it would anyway.
class Watched : public TrainableModel {
 public:
  explicit Watched(std::function<void(const at::Tensor&)> watch)
      : model_(small_model()), watch_(std::move(watch)) {}
  Parameters& parameters() override { return model_.parameters(); }
  at::Tensor summed_loss(const at::Tensor& tokens) override { return model_.summed_loss(tokens); }
  at::Tensor backpropagate(const at::Tensor& tokens, const GradientPass& pass) override {
    watch_(tokens);
    return model_.backpropagate(tokens, pass);
  }

 private:
  Llama model_;
  std::function<void(const at::Tensor&)> watch_;
};

std::vector<std::unique_ptr<Replica>> watched_replica(
    const std::function<void(const at::Tensor&)>& watch) {
  std::vector<std::unique_ptr<Replica>> replicas;
  replicas.push_back(
      std::make_unique<Replica>([&watch] { return std::make_unique<Watched>(watch); }));
  return replicas;
}

const auto kReductions = {ReductionKind::kBuckets, ReductionKind::kMaster};

}  // namespace

TEST_CASE("several devices train as one device with the whole batch does") {
  for (const auto kind : {StepKind::kAutograd, StepKind::kFused}) {
    const auto whole = train({5}, 5, ReductionKind::kBuckets, kind);
    for (const auto& shares :
         std::vector<Shares>{{3, 2}, {5, 0}, {0, 5}, {1, 0, 4}, {1, 1, 1, 1, 1}}) {
      for (const int64_t micro_batch : {2, 5}) {
        const auto split = train(shares, micro_batch, ReductionKind::kBuckets, kind);
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
}

TEST_CASE("buckets and master give the same bits") {
  for (const auto& shares :
       std::vector<Shares>{{4}, {3, 2}, {0, 2}, {2, 0}, {1, 0, 4}, {1, 1, 1, 1}}) {
    for (const auto kind : {StepKind::kAutograd, StepKind::kFused}) {
      const auto buckets = train(shares, 2, ReductionKind::kBuckets, kind);
      const auto master = train(shares, 2, ReductionKind::kMaster, kind);
      CHECK(buckets.losses == master.losses);
      CHECK(buckets.norms == master.norms);
      CHECK(at::equal(buckets.values, master.values));
    }
  }
}

TEST_CASE("the same shares give the same bits twice") {
  CHECK(at::equal(train({2, 3}, 2).values, train({2, 3}, 2).values));
}

TEST_CASE("with buckets all devices hold the same bits after many steps") {
  SmallSite site(3, reducing(ReductionKind::kBuckets));
  for (int64_t number = 0; number < 40; ++number) {
    const Shares shares{1 + number % 3, number % 2, 2};
    site.step().run(some_batch(sum(shares), 9, number), shares, 2, 0.5);
    for (const std::size_t device : {1U, 2U}) {
      CHECK(at::equal(site.values(device), site.values()));
    }
  }
}

TEST_CASE("devices follow values that were changed from outside") {
  for (const auto kind : {StepKind::kAutograd, StepKind::kFused}) {
    auto config = reducing(ReductionKind::kBuckets);
    config.step = kind;
    auto master_config = config;
    master_config.reduction = ReductionKind::kMaster;
    SmallSite site(3, config), master(3, master_config);
    const Shares shares{2, 1, 1};
    const int64_t size = site.values().numel();
    for (int64_t number = 0; number < 12; ++number) {
      for (auto* trained : {&site, &master}) {
        auto& mirror = trained->model(0).parameters().host_values();
        if (number % 3 == 1) {  // a fragment, merged in place, as a sync does it
          const int64_t begin = number * size / 16;
          const auto values = mirror.pull(begin, size / 4);
          for (auto& value : values) value *= 0.9F;
          mirror.push(begin, values);
        } else if (number % 3 == 2) {  // a fragment from memory of its own
          mirror.push(7, std::vector<float>(5, 0.25F));
        } else if (number == 6) {  // all
          for (auto& value : mirror.pull()) value += 0.01F;
          mirror.push();
        }
        trained->step().run(some_batch(sum(shares), 9, number), shares, 2, 0.5);
      }
      CHECK(at::equal(site.values(), master.values()));
      CHECK(at::equal(site.values(1), site.values()));
      CHECK(at::equal(site.values(2), site.values()));
    }
  }
}

TEST_CASE("a site goes on from the state of another with any number of devices") {
  for (const auto reduction : kReductions) {
    SmallSite whole(2, reducing(reduction)), resumed(2, reducing(reduction));
    const Shares shares{2, 1};
    const auto train_on = [&](SmallSite& site, int64_t from, int64_t to) {
      for (int64_t number = from; number < to; ++number) {
        site.step().run(some_batch(3, 9, number), shares, 2, 0.5);
      }
    };
    train_on(whole, 0, 4);
    const auto saved = whole.step().pull_state();
    const auto buffers = resumed.step().pull_state();
    for (std::size_t i = 0; i < saved.size(); ++i) {
      std::memcpy(buffers[i].bytes.data(), saved[i].bytes.data(), saved[i].bytes.size());
    }
    auto& mirror = resumed.model(0).parameters().host_values();
    std::ranges::copy(whole.model(0).parameters().host_values().pull(), mirror.pull().begin());
    mirror.push();
    resumed.step().push_state();
    train_on(whole, 4, 10);
    train_on(resumed, 4, 10);
    CHECK(at::equal(whole.values(), resumed.values()));
    if (reduction == ReductionKind::kBuckets) {
      CHECK(at::equal(resumed.values(1), resumed.values()));
    }
  }
}

TEST_CASE("shares that are not the batch are a bug") {
  SmallSite site(2, inner_config());
  const auto batch = some_batch(3, 9, 1);
  CHECK_THROWS_AS(site.step().run(batch, Shares{3}, 1, 0), InternalError);
  CHECK_THROWS_AS(site.step().run(batch, Shares{1, 1}, 1, 0), InternalError);
  CHECK_THROWS_AS(site.step().run(batch, Shares{1, 1, 1}, 1, 0), InternalError);
}

TEST_CASE("what fails on a device ends the step and leaves the models as they were") {
  for (const auto reduction : kReductions) {
    bool is_broken = true;
    auto model = small_model();
    const auto before = model.parameters().values().clone();
    InnerStep step(model, reducing(reduction), watched_replica([&](const at::Tensor&) {
                     if (is_broken) throw InternalError("this device is broken");
                   }));
    for (int i = 0; i < 10; ++i) {
      CHECK_THROWS_WITH(step.run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0), "this device is broken");
    }
    CHECK(at::equal(model.parameters().values(), before));
    is_broken = false;  // and the next step is as if nothing had been
    step.run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0.5);
    auto oracle = small_model();
    InnerStep(oracle, reducing(reduction), watched_replica([](const at::Tensor&) {}))
        .run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0.5);
    CHECK(at::equal(model.parameters().values(), oracle.parameters().values()));
  }
}

TEST_CASE("what fails on the first device is what comes out") {
  Watched model([](const at::Tensor&) { throw InternalError("the first is broken"); });
  InnerStep step(model, inner_config(), watched_replica([](const at::Tensor&) {}));
  CHECK_THROWS_WITH(step.run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0), "the first is broken");
}

TEST_CASE("a gradient that is not finite on one device is taken on none") {
  for (const auto reduction : kReductions) {
    SmallSite site(2, reducing(reduction));
    site.step().run(some_batch(2, 9, 1), Shares{1, 1}, 1, 0.5);
    auto& mirror = site.model(0).parameters().host_values();
    mirror.pull()[3] = std::nanf("");
    mirror.push();
    const auto before = site.values().clone();
    CHECK_THROWS_AS(site.step().run(some_batch(2, 9, 1), Shares{1, 1}, 1, 0.5), InternalError);
    CHECK(at::allclose(site.values(), before, 0, 0, /*equal_nan=*/true));
  }
}

TEST_CASE("the times of the devices are those of their own gradients") {
  auto model = small_model();
  // The first device has to wait for the other.
  InnerStep step(model, inner_config(), watched_replica([](const at::Tensor&) {
                   const auto end = std::chrono::steady_clock::now() + 60ms;
                   while (std::chrono::steady_clock::now() < end) continue;
                 }));
  const auto seconds = step.run(some_batch(2, 9, 1), Shares{1, 1}, 1, 0.5).device_seconds;
  CHECK(seconds[0] < 0.05);
  CHECK(seconds[1] >= 0.06);
}

TEST_CASE("a batch without room in memory names the largest micro-batch that fits") {
  for (const auto reduction : kReductions) {
    for (const std::size_t device : {0U, 1U}) {
      for (const int64_t fitting : {2, 5}) {
        const auto watch = [fitting](const at::Tensor& tokens) {
          if (tokens.size(0) > fitting) throw std::bad_alloc();
        };
        const auto anything = [](const at::Tensor&) {};
        Watched model(device == 0 ? std::function<void(const at::Tensor&)>(watch) : anything);
        InnerStep step(model, reducing(reduction),
                       device == 1 ? watched_replica(watch) : watched_replica(anything));
        const auto before = model.parameters().values().clone();
        const auto wanted = fmt::format(
            "devices[{}]: its memory has no room for a micro-batch of 6 sequences of 9 tokens; the "
            "largest that fits is {}: ",
            device, fitting);
        CHECK_THROWS_WITH(step.run(some_batch(14, 9, 1), Shares{7, 7}, 6, 0),
                          Catch::StartsWith(wanted));
        CHECK_THROWS_AS(step.run(some_batch(14, 9, 1), Shares{7, 7}, 6, 0), ConfigError);
        CHECK(at::equal(model.parameters().values(), before));
        step.run(some_batch(14, 9, 1), Shares{7, 7}, fitting, 0.5);
      }
    }
  }
}

TEST_CASE("memory that LibTorch cannot get is a lack of memory") {
  Watched watched([](const at::Tensor& tokens) {
    if (tokens.size(0) > 2) at::empty({int64_t{1} << 58});
  });
  InnerStep step(watched, inner_config());
  CHECK_THROWS_WITH(step.run(some_batch(4, 9, 1), 4, 0),
                    Catch::Contains("the largest that fits is 2"));
}

TEST_CASE("a device without room for one sequence says so") {
  Watched model([](const at::Tensor&) { throw std::bad_alloc(); });
  InnerStep step(model, inner_config());
  CHECK_THROWS_WITH(step.run(some_batch(3, 9, 1), 3, 0), Catch::Contains("not even one fits"));
}

TEST_CASE("a device that cannot be opened says so where its replica is made") {
  CHECK_THROWS_AS(Replica([]() -> std::unique_ptr<TrainableModel> { throw ConfigError("no GPU"); }),
                  ConfigError);
}

}  // namespace farstep
