// How fast the inner step is on a GPU.
//
//   step_gpu [STEPS]
//   step_gpu --serve [STEPS]
//   step_gpu --trace FILE [STEPS]
//
// Trains models of two sizes on random tokens: in bf16 with the fused step as a CUDA graph and
// kernel by kernel, and with autograd; one also in FP8, and with Muon. STEPS (20) steps each after
// 5 others. MFU is printed by both formulas of model_operations.h, with causal and with full
// attention, against the rate that a square bf16 product of 8192 reaches in this very run. Idle is
// the share of the time in which the GPU is in no step, by its own clock; gaps between the kernels
// of a step are not seen so. --trace writes every kernel's begin and duration in STEPS (3) steps of
// the served case to FILE, for chrome://tracing or Perfetto.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/bench/gpu_bench.h"
#include "tests/bench/model_operations.h"
#include "trainer/cuda/cuda_check.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/device.h"
#include "trainer/model/language/make_model.h"

using namespace farstep;

namespace {

constexpr int64_t kLength = 1024;

struct Case {
  const char* name;
  LlamaConfig shape;
  int64_t batch, micro_batch;
};

const LlamaConfig kGpt2Sized{.vocabulary = 50304,
                             .hidden = 768,
                             .intermediate = 2048,
                             .layers = 12,
                             .heads = 12,
                             .kv_heads = 12,
                             .tied_embeddings = true};

double median_seconds(int runs, const std::function<void()>& work) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const auto began = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::ranges::nth_element(times, times.begin() + runs / 2);
  return times[static_cast<std::size_t>(runs / 2)];
}

double peak_operations_per_second(at::Device gpu) {
  constexpr int64_t kSize = 8192;
  const auto a = at::randn({kSize, kSize}, at::TensorOptions(gpu).dtype(at::kBFloat16));
  const auto product = [&] {
    at::mm(a, a);
    synchronize(gpu);
  };
  product();
  return 2.0 * kSize * kSize * kSize / median_seconds(11, product);
}

TokenBatch random_batch(const Case& measured) {
  TokenBatch batch{.sequences = measured.batch, .length = kLength, .tokens = {}};
  std::minstd_rand random;
  for (int64_t i = 0; i < batch.sequences * (kLength + 1); ++i) {
    batch.tokens.push_back(static_cast<int64_t>(random()) % measured.shape.vocabulary);
  }
  return batch;
}

enum class Way { kGraph, kKernels, kAutograd, kFp8, kMuon };

constexpr std::string_view name_of(Way way) {
  constexpr std::array<std::string_view, 5> kNames{"graph", "kernels", "autograd", "fp8", "muon"};
  return kNames[static_cast<std::size_t>(way)];
}

struct StepTime {
  double seconds = 0;       // of a step, by the host's clock
  double idle_percent = 0;  // of that
};

// Mean of `steps` steps, given as a run gives them.
StepTime time_steps(InnerStep& inner, const TokenBatch& batch, int64_t micro_batch, int steps) {
  double device_seconds = 0;
  const auto count = [&](const std::optional<StepResult>& result) {
    if (result) device_seconds += result->device_seconds.front();
  };
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    count(inner.start(batch, std::vector{batch.sequences}, micro_batch, 0.5));
  }
  count(inner.finish());
  const auto took = std::chrono::steady_clock::now() - began;
  const double seconds = std::chrono::duration<double>(took).count();
  return {seconds / steps, 100 * std::max(0.0, 1 - device_seconds / seconds)};
}

InnerConfig config_of(Way way) {
  InnerConfig config;
  config.optimizer = way == Way::kMuon ? InnerOptimizer::kMuon : InnerOptimizer::kAdamW;
  config.step = way == Way::kAutograd ? StepKind::kAutograd : StepKind::kFused;
  config.compute = way == Way::kFp8 ? ComputeType::kFP8 : ComputeType::kBF16;
  config.cuda_graph = way != Way::kKernels;
  return config;
}

std::unique_ptr<TrainableModel> random_model(const Case& measured, const InnerConfig& config,
                                             at::Device gpu) {
  auto model = make_model(measured.shape, gpu, config.compute, config.step, /*recompute=*/false);
  model->parameters().initialise(1);
  return model;
}

void measure(const Case& measured, Way way, at::Device gpu, int steps, double peak) {
  const auto config = config_of(way);
  const auto model = random_model(measured, config, gpu);
  InnerStep inner(*model, config);
  const auto batch = random_batch(measured);
  time_steps(inner, batch, measured.micro_batch, 5);
  const auto [seconds, idle_percent] = time_steps(inner, batch, measured.micro_batch, steps);
  const auto idle = inner.may_be_late() ? fmt::format(", idle {:.2f} %", idle_percent) : "";
  std::size_t free_bytes = 0, all_bytes = 0;
  FARSTEP_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &all_bytes));
  const int64_t tokens = measured.batch * kLength;
  const auto operations = step_operations(measured.shape, tokens, kLength);
  const double percent = 100 / (seconds * peak);
  fmt::print(
      "result: {} {:<8} {:3} x {} in {}s: {:6.1f} ms, {:7.0f} tokens/s, MFU with causal attention "
      "{:4.1f} %, with full attention {:4.1f} %, of {:.0f} TFLOPS{}, {:.1f} GB in use\n",
      measured.name, name_of(way), measured.batch, kLength, measured.micro_batch, seconds * 1e3,
      static_cast<double>(tokens) / seconds, percent * operations.causal, percent * operations.full,
      peak * 1e-12, idle, static_cast<double>(all_bytes - free_bytes) * 1e-9);
}

at::Device open_first_gpu() {
  DeviceConfig config;
  config.kind = DeviceKind::kCuda;
  return open_device(config);
}

// The step that peer_step.py compares.
class Served {
 public:
  double step_seconds(int steps) {
    return time_steps(inner_, batch_, shape_.micro_batch, steps).seconds;
  }

 private:
  const Case shape_{"150M", preset_config(ModelPreset::k150M), 16, 16};
  const InnerConfig config_ = config_of(Way::kGraph);
  const std::unique_ptr<TrainableModel> model_ = random_model(shape_, config_, open_first_gpu());
  InnerStep inner_{*model_, config_};
  const TokenBatch batch_ = random_batch(shape_);
};

void serve(int steps) {
  Served served;
  for (std::string line; std::getline(std::cin, line);) {
    fmt::print("{}\n", served.step_seconds(steps));
  }
}

void trace(const std::string& file, int steps) {
  namespace profiler = torch::autograd::profiler;
  Served served;
  served.step_seconds(5);
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  const std::set<profiler::ActivityType> activities{profiler::ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  const double seconds = served.step_seconds(steps);
  profiler::disableProfiler()->save(file);
  fmt::print("result: {:.1f} ms a step while traced; {}\n", seconds * 1e3, file);
}

void run(int steps) {
  const auto gpu = open_first_gpu();
  const double peak = peak_operations_per_second(gpu);
  int failed = 0;
  const Case reference{"150M", preset_config(ModelPreset::k150M), 32, 16};
  const Case at_once{"150M", reference.shape, 64, 64};
  const Case gpt2_sized{"124M", kGpt2Sized, 32, 32};
  using enum Way;
  const std::vector<std::pair<Case, std::vector<Way>>> all{
      {reference, {kGraph, kKernels, kAutograd, kFp8, kMuon}},
      {at_once, {kGraph, kFp8}},
      {gpt2_sized, {kGraph, kKernels, kAutograd}}};
  for (const auto& [measured, ways] : all) {
    for (const auto way : ways) {
      try {
        measure(measured, way, gpu, steps, peak);
      } catch (const std::exception& error) {
        // A smaller GPU may lack room for one of them alone.
        const std::string what = error.what();
        fmt::print("result: {} {:<8} failed: {}\n", measured.name, name_of(way),
                   what.substr(0, what.find('\n')));
        ++failed;
      }
    }
  }
  if (failed > 0) throw InternalError(fmt::format("{} of the cases failed", failed));
}

}  // namespace

int main(int argc, char** argv) {
  bool serves = false;
  std::string file;
  int steps = 0;
  CLI::App app("Measures the inner step on a GPU");
  auto* const serve_option = app.add_flag("--serve", serves);
  app.add_option("--trace", file)->excludes(serve_option);
  app.add_option("steps", steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return run_gpu_bench("step_gpu", [&] {
    if (!file.empty()) {
      trace(file, steps > 0 ? steps : 3);
    } else {
      (serves ? serve : run)(steps > 0 ? steps : 20);
    }
  });
}
