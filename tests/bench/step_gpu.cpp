// How fast the inner step is on a GPU.
//
//   step_gpu [STEPS]
//
// Trains models of two sizes in bf16 on random tokens, with the fused step and with autograd, and
// takes the median of STEPS (20) steps each after 5 others. MFU counts 6 operations a parameter
// outside the embedding and token, and causal attention, against the rate that a square bf16
// product of 8192 reaches in this very run.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <random>
#include <vector>

#include "tests/bench/model_operations.h"
#include "trainer/base/error.h"
#include "trainer/cuda/cuda_check.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/device.h"
#include "trainer/model/make_model.h"

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

void measure(const Case& measured, StepKind kind, at::Device gpu, int steps, double peak) {
  InnerConfig config;
  config.step = kind;
  config.compute = ComputeType::kBF16;
  const auto model = make_model(measured.shape, gpu, config, /*recompute=*/false);
  model->parameters().initialise(1);
  InnerStep inner(*model, config);
  const auto batch = random_batch(measured);
  const auto step = [&] { inner.run(batch, measured.micro_batch, 0.5); };
  for (int i = 0; i < 5; ++i) step();
  const double seconds = median_seconds(steps, step);
  std::size_t free_bytes = 0, all_bytes = 0;
  FARSTEP_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &all_bytes));
  const int64_t tokens = measured.batch * kLength;
  const double rate = step_operations(measured.shape, tokens, kLength) / seconds;
  fmt::print(
      "result: {} {:<8} {:3} x {} in {}s: {:6.1f} ms, {:7.0f} tokens/s, MFU {:4.1f} % of {:.0f} "
      "TFLOPS, {:.1f} GB in use\n",
      measured.name, kind == StepKind::kFused ? "fused" : "autograd", measured.batch, kLength,
      measured.micro_batch, seconds * 1e3, static_cast<double>(tokens) / seconds, 100 * rate / peak,
      peak * 1e-12, static_cast<double>(all_bytes - free_bytes) * 1e-9);
}

void run(int steps) {
  DeviceConfig config;
  config.kind = DeviceKind::kCuda;
  const auto gpu = open_device(config);
  const double peak = peak_operations_per_second(gpu);
  for (const auto& measured : {Case{"150M", preset_config(ModelPreset::k150M), 32, 16},
                               Case{"124M", kGpt2Sized, 32, 32}}) {
    measure(measured, StepKind::kFused, gpu, steps, peak);
    measure(measured, StepKind::kAutograd, gpu, steps, peak);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc == 2 ? std::atoi(argv[1]) : 20;
  if (argc > 2 || steps < 1) {
    fmt::print(stderr, "usage: step_gpu [STEPS]\n");
    return 2;
  }
  if (usable_gpus() == 0) {
    fmt::print("SKIPPED: no usable NVIDIA GPU\n");
    return 77;
  }
  try {
    run(steps);
  } catch (const Error& error) {
    fmt::print(stderr, "step_gpu: {}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
