#include "trainer/model/gpu_ops/gpu_products.h"

#include <ATen/Context.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "trainer/cuda/cuda_check.h"
#include "trainer/cuda/gpu_stream.h"
#include "trainer/model/gpu_ops/cublas_lt.h"

namespace farstep {

namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // as LibTorch has on an H100

// Below this a product takes a few microseconds, which the launch decides and not the algorithm.
constexpr double kSmallOperations = 1e9;

// Nullopt: LibTorch's own product.
using Choice = std::optional<CublasLt::Algorithm>;

// A product to launch: into the call's result, or without adding into another one.
struct Call {
  const CublasLt& lt;
  LtProduct product;
  LtArrays arrays;
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
  std::function<void(const GpuProduct&)> by_libtorch;

  // Returns whether the choice supports the product.
  bool launch(const Choice& choice, const GpuProduct& result) const {
    if (!choice) {
      by_libtorch(result);
      return true;
    }
    auto own = arrays;
    own.c = result.rounded != nullptr ? static_cast<void*>(result.rounded) : result.exact;
    own.add = result.add;
    return lt.multiply(product, *choice, own, workspace, kWorkspaceBytes, stream);
  }
};

// A way to compute the product, and its times so far.
struct Candidate {
  Choice choice;
  std::vector<double> seconds;

  double median() {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::ranges::nth_element(seconds, middle);
    return *middle;
  }
};

double seconds_of(const Call& call, const Choice& choice, const GpuProduct& result, int launches) {
  GpuEvent began, ended;
  began.record(call.stream);
  for (int i = 0; i < launches; ++i) call.launch(choice, result);
  ended.record(call.stream);
  ended.wait();
  return ended.seconds_since(began) / launches;
}

// Overwrites `result`. The candidates take turns, since the GPU's clock changes meanwhile.
Choice fastest(const Call& call, const GpuProduct& result) {
  // A turn is long beside the events around it. LibTorch's way keeps its place if another one is
  // faster by less than the times vary, so that processes choose alike.
  constexpr double kTurnSeconds = 0.5e-3, kHopeless = 1.2, kAsGood = 1.01;
  constexpr int kTurns = 5, kMostLaunches = 20;
  std::vector<Candidate> candidates{{std::nullopt, {}}};
  for (const auto& algorithm : call.lt.algorithms(call.product, call.arrays, kWorkspaceBytes)) {
    candidates.push_back({algorithm, {}});
  }
  // The first launch loads the kernel.
  std::erase_if(candidates, [&](auto& one) { return !call.launch(one.choice, result); });
  FARSTEP_CUDA_CHECK(cudaDeviceSynchronize());  // other streams' work would slow the trial
  for (auto& one : candidates) one.seconds = {seconds_of(call, one.choice, result, 1)};
  const double limit = kHopeless * std::ranges::min(candidates, {}, &Candidate::median).median();
  const int launches =
      std::clamp(static_cast<int>(kTurnSeconds * kHopeless / limit), 1, kMostLaunches);
  std::erase_if(candidates, [&](auto& one) { return one.choice && one.median() > limit; });
  for (auto& one : candidates) one.seconds.clear();
  for (int turn = 0; turn < kTurns; ++turn) {
    for (auto& one : candidates) {
      one.seconds.push_back(seconds_of(call, one.choice, result, launches));
    }
  }
  auto& libtorch = candidates.front();
  auto& best = *std::ranges::min_element(candidates, {}, &Candidate::median);
  const auto& product = call.product;
  spdlog::debug("product {} x {} x {}: {:.1f} us by LibTorch, {:.1f} us by the fastest of {}",
                product.m, product.n, product.k, libtorch.median() * 1e6, best.median() * 1e6,
                candidates.size());
  return libtorch.median() <= kAsGood * best.median() ? std::nullopt : best.choice;
}

struct MeasuredProduct {
  int gpu = 0;
  LtProduct product;

  auto operator<=>(const MeasuredProduct&) const = default;
};

// The choices of this process. GPUs measure side by side, each in a thread of its own.
class Choices {
 public:
  std::optional<Choice> known(const MeasuredProduct& product) {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(product);
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const MeasuredProduct& product, const Choice& choice) {
    const std::scoped_lock lock(mutex_);
    known_[product] = choice;
  }

 private:
  std::mutex mutex_;
  std::map<MeasuredProduct, Choice> known_;
};

// Does not change values that the product adds to: the trial has a result of its own then.
Choice measured(at::Device device, const Call& call, const GpuProduct& result) {
  if (!result.add) return fastest(call, result);
  try {
    const auto trial =
        at::empty({call.product.m, call.product.n}, at::TensorOptions(device).dtype(at::kFloat));
    return fastest(call, {.exact = trial.mutable_data_ptr<float>()});
  } catch (const c10::OutOfMemoryError&) {
    return std::nullopt;
  }
}

Choice choice_for(at::Device device, const Call& call, const GpuProduct& result) {
  static Choices choices;
  const MeasuredProduct product{device.index(), call.product};
  if (const auto known = choices.known(product)) return *known;
  auto recording = cudaStreamCaptureStatusNone;
  FARSTEP_CUDA_CHECK(cudaStreamIsCapturing(call.stream, &recording));
  if (recording != cudaStreamCaptureStatusNone) return std::nullopt;
  const auto choice = measured(device, call, result);
  choices.keep(product, choice);
  return choice;
}

uint32_t alignment_of(const void* memory) {
  constexpr uintptr_t kMost = 256;  // more brings nothing
  const auto address = reinterpret_cast<uintptr_t>(memory) | kMost;
  return static_cast<uint32_t>(address & -address);
}

LtMatrix factor_of(const Factor<BF16>& factor) {
  return {CUDA_R_16BF, factor.stride, factor.transposed, alignment_of(factor.values)};
}
LtMatrix factor_of(const Fp8Factor& factor, int64_t columns, bool transposed) {
  return {factor.format == Fp8Format::kE4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2, columns, transposed,
          alignment_of(factor.codes)};
}
LtMatrix result_of(const GpuProduct& product, int64_t columns) {
  return product.rounded != nullptr
             ? LtMatrix{CUDA_R_16BF, columns, false, alignment_of(product.rounded)}
             : LtMatrix{CUDA_R_32F, columns, false, alignment_of(product.exact)};
}

bool is_measured(int64_t m, int64_t n, int64_t k) {
  const double operations =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return operations >= kSmallOperations && !at::globalContext().deterministicAlgorithms();
}

void launch_fastest(at::Device device, const Call& call, const GpuProduct& result) {
  const bool is_launched = call.launch(choice_for(device, call, result), result);
  // An algorithm may not support the addition, without which it was measured.
  if (!is_launched) call.by_libtorch(result);
}

}  // namespace

void* GpuProducts::workspace(cudaStream_t stream) {
  auto found = std::ranges::find(workspaces_, stream, [](const auto& one) { return one.first; });
  if (found == workspaces_.end()) {
    const auto bytes = at::TensorOptions(device_).dtype(at::kByte);
    workspaces_.emplace_back(stream, at::empty({int64_t{kWorkspaceBytes}}, bytes));
    found = workspaces_.end() - 1;
  }
  return found->second.mutable_data_ptr();
}

void GpuProducts::multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                           const Factor<BF16>& b, const GpuProduct& c) {
  const auto by_libtorch = [&](const GpuProduct& result) {
    gpu_multiply(device_, m, n, k, a, b, result);
  };
  if (!is_measured(m, n, k)) return by_libtorch(c);
  const auto stream = current_stream(device_);
  launch_fastest(device_,
                 {.lt = CublasLt::of_current_gpu(),
                  .product = {m, n, k, factor_of(a), factor_of(b), result_of(c, n)},
                  .arrays = {.a = a.values, .b = b.values},
                  .workspace = workspace(stream),
                  .stream = stream,
                  .by_libtorch = by_libtorch},
                 c);
}

void GpuProducts::multiply_fp8(int64_t m, int64_t n, int64_t k, const Fp8Factor& a,
                               const Fp8Factor& b, bool fast, const GpuProduct& c) {
  const auto by_libtorch = [&](const GpuProduct& result) {
    gpu_multiply_fp8(device_, m, n, k, a, b, fast, result);
  };
  if (!is_measured(m, n, k)) return by_libtorch(c);
  const auto stream = current_stream(device_);
  launch_fastest(
      device_,
      {.lt = CublasLt::of_current_gpu(),
       .product = {m, n, k, factor_of(a, k, false), factor_of(b, k, true), result_of(c, n), fast},
       .arrays =
           {.a = a.codes, .b = b.codes, .a_scale = a.inverse_scale, .b_scale = b.inverse_scale},
       .workspace = workspace(stream),
       .stream = stream,
       .by_libtorch = by_libtorch},
      c);
}

}  // namespace farstep
