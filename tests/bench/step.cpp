// How fast the inner step is, and where its time goes.
//
//   step [--preset 7m|150m] [--batch B --length T] [--step fused|autograd] [--compute
//   bf16|fp8|fp32]
//        [--recompute] [--threads N] [--seconds S] [--serve]
//        [--instructions SET] [--products measure|first|WAY] [--optimizer adamw|muon]
//        [--steps N] [--update TURNS]
//
// MFU is printed by both formulas of model_operations.h, with causal and with full attention,
// against the rate of a square product by the fastest way. The product takes turns with the steps,
// so both have the same neighbours on the machine; medians. The share of its best turn follows.
// With --serve it waits: for every line on its input it takes one step and prints the seconds it
// took, so that another program can take turns with it. Of the fused step a table tells which
// operations the time went to. It measures N steps at least (5), after 3 or N others. With --update
// it then times updates alone, from the last step's gradients and with their norm and clipping, by
// AdamW and by Muon in turns.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/model_operations.h"
#include "tests/bench/timed_ops.h"
#include "tests/bench/turns.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/inner/inner_step.h"
#include "trainer/inner/make_optimizer.h"
#include "trainer/model/cpu_instructions.h"
#include "trainer/model/cpu_ops/cpu_ops.h"
#include "trainer/model/cpu_ops/fp8_cpu_ops.h"
#include "trainer/model/fused/fused_llama.h"
#include "trainer/model/language/make_model.h"
#include "trainer/model/matmul/product_choice.h"

using namespace farstep;

namespace {

struct Options {
  std::string preset = "7m", step = "fused", compute = "bf16";
  std::string instructions = "amx", products = "measure", optimizer = "adamw";
  int64_t batch = 8, length = 256;
  int threads = 2;
  double seconds = 10;
  bool recompute = false, serve = false;
  int steps = 5, update = 0;
};

LlamaConfig shape_of(const std::string& preset) {
  if (preset == "7m") {
    return {.vocabulary = 4096,
            .hidden = 256,
            .intermediate = 688,
            .layers = 6,
            .heads = 4,
            .kv_heads = 4};
  }
  return preset_config(ModelPreset::k150M);
}

InnerOptimizer optimizer_called(const std::string& name) {
  return name == "muon" ? InnerOptimizer::kMuon : InnerOptimizer::kAdamW;
}

// A square product by the way that is fastest on this processor.
template <typename T>
class SquareProduct {
 public:
  SquareProduct() {
    double best = HUGE_VAL;
    for (int i = 0; i < kProductWays; ++i) {
      const auto way = static_cast<ProductWay>(i);
      if (!can_multiply_by<T>(way)) continue;
      for (int turn = 0; turn < 5; ++turn) {
        const double taken = seconds_by(way);
        if (taken < best) way_ = way;
        best = std::min(best, taken);
      }
    }
  }
  double seconds() { return seconds_by(way_); }
  double operations() const { return 2.0 * kSize * kSize * kSize; }

 private:
  static constexpr int64_t kSize = 2048;
  static constexpr int64_t kStride = kSize + 32;  // a power of two puts all rows in few cache sets

  double seconds_by(ProductWay way) {
    return seconds_of([&] {
      multiply_by(way, kSize, kSize, kSize, Factor<T>{a_.data(), kStride},
                  Factor<T>{a_.data(), kStride, true}, {c_.data(), kSize});
    });
  }

  std::vector<T> a_ = std::vector<T>(kSize * kStride, rounded<T>(0.5F));
  std::vector<float> c_ = std::vector<float>(kSize * kSize);
  ProductWay way_ = ProductWay::kLibTorch;
};

// Limits the instructions, chooses the products, and says on the error stream how.
template <typename T>
void choose(const Options& options) {
  const auto names = enum_names(ProductWay{});
  const auto named = std::ranges::find(names, options.products);
  if (named != names.end()) choose_products(static_cast<ProductWay>(named - names.begin()));
  if (options.products == "measure") choose_products_by_measuring<T>();
  fmt::print(stderr, "instructions: {}; products: {}\n",
             enum_names(InstructionSet{})[static_cast<std::size_t>(instruction_set())],
             describe_choice<T>());
}

class Training {
 public:
  Training(const LlamaConfig& shape, const Options& options) : options_(options) {
    config_.step = options.step == "fused" ? StepKind::kFused : StepKind::kAutograd;
    config_.compute = options.compute == "bf16"  ? ComputeType::kBF16
                      : options.compute == "fp8" ? ComputeType::kFP8
                                                 : ComputeType::kFP32;
    config_.optimizer = optimizer_called(options.optimizer);
    model_ = config_.step == StepKind::kAutograd
                 ? make_model(shape, at::kCPU, config_.compute, config_.step, options.recompute)
             : config_.compute == ComputeType::kBF16
                 ? timed_model<BF16>(shape, std::make_unique<CpuOps<BF16>>())
             : config_.compute == ComputeType::kFP8
                 ? timed_model<BF16>(shape, std::make_unique<Fp8CpuOps>())
                 : timed_model<float>(shape, std::make_unique<CpuOps<float>>());
    model_->parameters().initialise(1);
    inner_ = std::make_unique<InnerStep>(*model_, config_);
    batch_ = {.sequences = options.batch, .length = options.length, .tokens = {}};
    std::minstd_rand random;
    for (int64_t i = 0; i < options.batch * (options.length + 1); ++i) {
      batch_.tokens.push_back(static_cast<int64_t>(random()) % shape.vocabulary);
    }
  }
  double step() {
    return seconds_of([&] { inner_->run(batch_, options_.batch, 0.5); });
  }
  // Seconds of updates alone, by each of these optimizers in turns. No step can follow.
  std::vector<std::vector<double>> update_alone(std::span<const std::string> names, int turns) {
    inner_.reset();  // its state takes as much memory as the values do twice
    std::vector<std::unique_ptr<Optimizer>> optimizers;
    for (const auto& name : names) {
      auto config = config_;
      config.optimizer = optimizer_called(name);
      optimizers.push_back(make_optimizer(config, model_->parameters()));
    }
    std::vector<std::vector<double>> seconds(names.size());
    for (int turn = -1; turn < turns; ++turn) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const double taken =
            seconds_of([&] { optimizers[i]->clip_and_update(kRate, config_.clip_norm); });
        if (turn >= 0) seconds[i].push_back(taken);  // the first one touches its state's memory
      }
    }
    return seconds;
  }
  OperationTimes& times() { return times_; }

 private:
  static constexpr double kRate = 1e-5;

  template <typename T>
  std::unique_ptr<TrainableModel> timed_model(const LlamaConfig& shape,
                                              std::unique_ptr<FusedOps<T>> ops) {
    auto timed = std::make_unique<TimedOps<T>>(std::move(ops), times_);
    return std::make_unique<FusedLlama<T>>(shape, std::move(timed), options_.recompute);
  }

  const Options options_;
  OperationTimes times_;
  InnerConfig config_;
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<InnerStep> inner_;
  TokenBatch batch_;
};

void serve(Training& training) {
  for (std::string line; std::getline(std::cin, line);) {
    fmt::print("{}\n", training.step());
    std::fflush(stdout);
  }
}

// What a step's time went to, the longest first.
void print_table(const OperationTimes& times, double steps, double step_seconds) {
  std::vector<std::pair<std::string, OperationTime>> rows(times.begin(), times.end());
  double rest = step_seconds;
  for (auto& [name, time] : rows) rest -= time.seconds / steps;
  rows.emplace_back("gradient norm, clipping, update, the rest",
                    OperationTime{.seconds = rest * steps});
  std::ranges::sort(rows, std::greater{}, [](const auto& row) { return row.second.seconds; });
  fmt::print("{:<42}{:>9}{:>9}{:>9}{:>9}\n", "operation", "calls", "ms", "%", "TFLOPS");
  for (const auto& [name, time] : rows) {
    fmt::print("{:<42}{:>9.0f}{:>9.2f}{:>9.1f}{:>9}\n", name,
               static_cast<double>(time.calls) / steps, time.seconds / steps * 1e3,
               100 * time.seconds / steps / step_seconds,
               time.flops == 0 ? "" : fmt::format("{:.2f}", time.flops / time.seconds * 1e-12));
  }
}

template <typename T>
void measure(Training& training, const LlamaConfig& shape, const Options& options) {
  for (int i = 0; i < std::min(3, options.steps); ++i) training.step();
  training.times().clear();
  SquareProduct<T> product;
  std::vector<double> times, products;
  for (double sum = 0; sum < options.seconds || std::ssize(times) < options.steps;
       sum += times.back()) {
    times.push_back(training.step());
    products.push_back(product.seconds());
  }
  const double total = std::accumulate(times.begin(), times.end(), 0.0);
  const double step_seconds = median(times);
  const double rate = product.operations() / median(products);
  const double best_rate = product.operations() / std::ranges::min(products);
  const auto operations = step_operations(shape, options.batch * options.length, options.length);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{} {} {}: batch {} x {}, {} threads, {} steps\n", options.preset, options.step,
             options.compute, options.batch, options.length, options.threads, times.size());
  fmt::print("step {:.1f} ms (best {:.1f}, worst {:.1f}), {:.0f} tokens/s\n", step_seconds * 1e3,
             std::ranges::min(times) * 1e3, std::ranges::max(times) * 1e3,
             static_cast<double>(options.batch * options.length) / step_seconds);
  const double percent = 100 / step_seconds;
  fmt::print(
      "MFU with causal attention {:.1f} %, with full attention {:.1f} %, of {:.2f} TFLOPS that a "
      "product reaches in turns with the steps ({:.1f} and {:.1f} % of {:.2f} at best); peak "
      "memory "
      "{} MiB\n",
      percent * operations.causal / rate, percent * operations.full / rate, rate * 1e-12,
      percent * operations.causal / best_rate, percent * operations.full / best_rate,
      best_rate * 1e-12, usage.ru_maxrss / 1024);
  if (!training.times().empty()) {
    const auto steps = static_cast<double>(times.size());
    print_table(training.times(), steps, total / steps);
  }
}

void measure_updates(Training& training, const Options& options) {
  const std::array<std::string, 2> kNames{"adamw", "muon"};
  auto seconds = training.update_alone(kNames, options.update);
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    std::ranges::sort(seconds[i]);
    fmt::print("update by {}: {:.1f} ms (best {:.1f}, worst {:.1f}), {} threads\n", kNames[i],
               seconds[i][seconds[i].size() / 2] * 1e3, seconds[i].front() * 1e3,
               seconds[i].back() * 1e3, options.threads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the inner step on a CPU");
  app.add_option("--preset", options.preset)->check(CLI::IsMember({"7m", "150m"}));
  app.add_option("--step", options.step)->check(CLI::IsMember({"fused", "autograd"}));
  app.add_option("--compute", options.compute)->check(CLI::IsMember({"bf16", "fp8", "fp32"}));
  app.add_flag("--recompute", options.recompute);
  app.add_option("--batch", options.batch);
  app.add_option("--length", options.length);
  app.add_option("--threads", options.threads);
  app.add_option("--seconds", options.seconds);
  app.add_flag("--serve", options.serve);
  app.add_option("--optimizer", options.optimizer)->check(CLI::IsMember({"adamw", "muon"}));
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_option("--update", options.update, "turns");
  const auto sets = enum_names(InstructionSet{});
  app.add_option("--instructions", options.instructions, "for LibTorch as well")
      ->check(CLI::IsMember(std::vector<std::string>(sets.begin(), sets.end())));
  app.add_option("--products", options.products);
  CLI11_PARSE(app, argc, argv);
  limit_cpu_instructions(
      static_cast<InstructionSet>(std::ranges::find(sets, options.instructions) - sets.begin()));
  at::set_num_threads(options.threads);
  options.compute == "fp32" ? choose<float>(options) : choose<BF16>(options);
  const auto shape = shape_of(options.preset);
  Training training(shape, options);
  if (options.serve) {
    serve(training);
  } else {
    options.compute == "fp32" ? measure<float>(training, shape, options)
                              : measure<BF16>(training, shape, options);
    if (options.update > 0) measure_updates(training, options);
  }
}
