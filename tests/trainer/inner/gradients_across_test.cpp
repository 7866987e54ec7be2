// Steps whose gradients are summed with those of others, as a strategy that syncs every step does.
#include <atomic>
#include <future>

#include "tests/support/catch.h"
#include "tests/trainer/inner/site_training.h"
#include "tests/trainer/inner/small_training.h"
#include "trainer/reduction/host_reduction.h"

namespace farstep {
namespace {

// A seat of one site in a reduction among several, of which each calls itself device 0.
class Seat : public SiteReduction {
 public:
  Seat(HostReduction& all, std::size_t place) : all_(all), place_(place) {}
  void begin_step() override {}
  void ready(std::size_t device, int64_t begin, int64_t end) override {
    CHECK(device == 0);
    ++parts;
    all_.ready(place_, begin, end);
  }
  bool finish(std::size_t) override { return all_.finish(place_); }
  void abandon() override { all_.abandon(); }

  std::atomic<int> parts = 0;

 private:
  HostReduction& all_;
  const std::size_t place_;
};

InnerConfig descent(double learning_rate) {
  auto config = inner_config();
  config.optimizer = InnerOptimizer::kSgd;
  config.rate.peak_learning_rate = learning_rate;
  config.clip_norm.reset();
  return config;
}

// The n-th of two equal parts of a batch.
TokenBatch half_of(const TokenBatch& batch, int64_t n) {
  TokenBatch half{.sequences = batch.sequences / 2, .length = batch.length, .tokens = {}};
  const auto values = std::ssize(batch.tokens) / 2;
  half.tokens.assign(batch.tokens.begin() + n * values, batch.tokens.begin() + (n + 1) * values);
  return half;
}

const SpreadWork kOnThisThread = [](int64_t begin, int64_t end, const auto& work) {
  work(begin, end);
};

// Two sites that sum the gradients of their halves of a batch, beside one site with the whole
// batch.
struct TwoSites {
  // The sum of two means is twice the whole batch's: so the two have half the learning rate.
  TwoSites(StepKind step, ReductionKind reduction, std::size_t first_devices)
      : whole(1, config(0.2, step, reduction)),
        first(first_devices, config(0.1, step, reduction)),
        second(1, config(0.1, step, reduction)) {}

  // Takes five steps. The devices of the first site have `first_shares`.
  void run(const std::vector<int64_t>& first_shares) {
    for (int64_t seed = 1; seed <= 5; ++seed) {
      const auto batch = some_batch(4, 16, seed);
      whole.step().run(batch, 2, 0.5);
      all.begin_step();
      const auto run_half = [&](SmallSite& site, int64_t place,
                                const std::vector<int64_t>& shares) {
        at::set_num_threads(1);
        site.step().run_across(half_of(batch, place), shares, 1, 0.5, seats[place]);
      };
      auto other = std::async(std::launch::async, [&] { run_half(second, 1, {2}); });
      run_half(first, 0, first_shares);
      other.get();
    }
    CHECK(at::equal(first.values(), second.values()));
    CHECK(at::allclose(first.values(), whole.values(), 1e-4, 1e-6));
  }

  static InnerConfig config(double learning_rate, StepKind step, ReductionKind reduction) {
    auto config = descent(learning_rate);
    config.step = step;
    config.reduction = reduction;
    return config;
  }

  SmallSite whole, first, second;
  HostReduction all{
      {first.step().host_gradients(), second.step().host_gradients()}, 1000, kOnThisThread};
  Seat seats[2] = {{all, 0}, {all, 1}};
};

TEST_CASE("sites that sum their gradients in every step follow one device with the whole batch") {
  for (const auto step : {StepKind::kFused, StepKind::kAutograd}) {
    TwoSites sites(step, ReductionKind::kBuckets, 1);
    sites.run({2});
    // The fused model says during backward what is final.
    if (step == StepKind::kFused) CHECK(sites.seats[0].parts > 5);
  }
}

TEST_CASE("the devices of a site add up before the sites do, and all have the sum") {
  for (const auto kind : {ReductionKind::kBuckets, ReductionKind::kMaster}) {
    TwoSites sites(StepKind::kFused, kind, 2);
    sites.run({1, 1});
    if (kind == ReductionKind::kBuckets) {
      CHECK(at::equal(sites.first.values(0), sites.first.values(1)));
    }
  }
}

TEST_CASE("a site whose step fails ends the others' steps") {
  SmallSite first(1, descent(0.1)), second(1, descent(0.1));
  HostReduction all({first.step().host_gradients(), second.step().host_gradients()}, 1000,
                    kOnThisThread);
  Seat one(all, 0);
  all.begin_step();
  all.abandon();  // by the second
  const auto batch = some_batch(2, 16, 1);
  const auto before = first.values().clone();
  CHECK_THROWS_AS(first.step().run_across(batch, std::vector<int64_t>{2}, 1, 0.5, one),
                  InternalError);
  CHECK(at::equal(first.values(), before));
}

}  // namespace
}  // namespace farstep
