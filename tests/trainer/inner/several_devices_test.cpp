// Several devices of a site train as one, whatever their shares and however gradients add up.
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/trainer/inner/watched_model.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

using namespace std::chrono_literals;

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

// A stop watch around the function bounds the time from above, one inside `ready` what must not be
// in it. So both bounds hold on a machine of any speed.
TEST_CASE("the time of a device's gradients is without that of adding them up") {
  using std::chrono::duration, std::chrono::steady_clock;
  auto model = small_model();
  double adding_seconds = 0;
  const auto began = steady_clock::now();
  const auto result = share_gradients(model, some_batch(2, 9, 1), {0, 2, 1}, [&](int64_t, int64_t) {
    const auto told = steady_clock::now();
    while (steady_clock::now() < told + 20ms) continue;
    adding_seconds += duration<double>(steady_clock::now() - told).count();
  });
  const double all_seconds = duration<double>(steady_clock::now() - began).count();
  CHECK(adding_seconds > 0);
  CHECK(result.seconds > 0);
  CHECK(result.seconds <= all_seconds - adding_seconds);
}

}  // namespace farstep
