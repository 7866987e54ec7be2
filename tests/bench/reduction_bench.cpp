// How long an inner step of two CPU slices lasts by the way in which they add up their gradients,
// both timed in turns.
//
//   reduction_bench [HIDDEN LAYERS LENGTH SEQUENCES THREADS SECONDS]
//
// Slices of THREADS threads each, SEQUENCES sequences on each in every step, bf16.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "trainer/data/tokens/token_batch.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/language/make_model.h"

using namespace farstep;

namespace {

constexpr int64_t kVocabulary = 4096;

class Site {
 public:
  Site(const LlamaConfig& shape, ReductionKind reduction, int threads) {
    InnerConfig config;
    config.compute = ComputeType::kBF16;
    config.reduction = reduction;
    const auto make = [&] {
      at::set_num_threads(threads);
      return make_model(shape, at::kCPU, config.compute, config.step, /*recompute=*/false);
    };
    model_ = make();
    model_->parameters().initialise(1);
    std::vector<std::unique_ptr<Replica>> replicas;
    replicas.push_back(std::make_unique<Replica>(make));
    inner_ = std::make_unique<InnerStep>(*model_, config, std::move(replicas));
  }
  double step(const TokenBatch& batch) {
    const auto began = std::chrono::steady_clock::now();
    inner_->run(batch, std::vector<int64_t>(2, batch.sequences / 2), batch.sequences / 2, 0.5);
    seconds_.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    return seconds_.back();
  }
  void forget_steps() { seconds_.clear(); }
  std::vector<double> sorted_seconds() const {
    auto sorted = seconds_;
    std::ranges::sort(sorted);
    return sorted;
  }
  const at::Tensor& values() { return model_->parameters().values(); }

 private:
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<InnerStep> inner_;
  std::vector<double> seconds_;
};

TokenBatch random_batch(int64_t sequences, int64_t length) {
  TokenBatch batch{.sequences = sequences, .length = length, .tokens = {}};
  std::minstd_rand random;
  for (int64_t i = 0; i < sequences * (length + 1); ++i) {
    batch.tokens.push_back(static_cast<int64_t>(random()) % kVocabulary);
  }
  return batch;
}

void print(const char* name, const Site& site) {
  const auto seconds = site.sorted_seconds();
  fmt::print("{:>8} {:>9.1f} {:>9.1f} {:>9.1f} {:>6}\n", name, seconds[seconds.size() / 2] * 1e3,
             seconds.front() * 1e3, seconds.back() * 1e3, seconds.size());
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, int64_t otherwise) {
    return argc > index ? std::atol(argv[index]) : otherwise;
  };
  const int64_t hidden = argument(1, 256), layers = argument(2, 6), length = argument(3, 256);
  const auto batch = random_batch(2 * argument(4, 4), length);
  const auto threads = static_cast<int>(argument(5, 1));
  const LlamaConfig shape{.vocabulary = kVocabulary,
                          .hidden = hidden,
                          .intermediate = hidden / 16 * 43,
                          .layers = layers,
                          .heads = hidden / 64,
                          .kv_heads = hidden / 64};
  Site buckets(shape, ReductionKind::kBuckets, threads);
  Site master(shape, ReductionKind::kMaster, threads);
  for (auto* site : {&buckets, &master}) {
    for (int i = 0; i < 3; ++i) site->step(batch);
    site->forget_steps();
  }
  for (double left = static_cast<double>(argument(6, 20)); left > 0;) {
    left -= buckets.step(batch) + master.step(batch);
  }
  fmt::print("{} parameters, 2 slices of {} threads, {} x {} a step; same values: {}\n",
             buckets.values().numel(), threads, batch.sequences, length,
             at::equal(buckets.values(), master.values()));
  fmt::print("{:>8} {:>9} {:>9} {:>9} {:>6}\n", "", "median ms", "best", "worst", "steps");
  print("buckets", buckets);
  print("master", master);
  return 0;
}
