// How near a GPU's own kernels come to its copying of memory.
//
//   kernels_gpu [ROWS]
//
// Of ROWS (16384) tokens of a model with hidden 1024, 2688 inside the feed-forward, heads of 64 and
// a vocabulary of 32000; tokens are as common as words are, the k-th most common one by 1 / (k
// + 2.7) (Zipf's law, with Mandelbrot's constant). "of a copy" is the time that reading and writing
// what the kernel must would take at the speed of a copy, over its own; both are the medians of 21
// runs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/gpu_bench.h"
#include "trainer/cuda/device_array.h"
#include "trainer/kernels/gpu/adamw.h"
#include "trainer/kernels/gpu/cross_entropy.h"
#include "trainer/kernels/gpu/embedding.h"
#include "trainer/kernels/gpu/fp8.h"
#include "trainer/kernels/gpu/rms_norm.h"
#include "trainer/kernels/gpu/rotary.h"
#include "trainer/kernels/gpu/swiglu.h"

using namespace farstep;

namespace {

constexpr int64_t kHidden = 1024, kIntermediate = 2688, kVocabulary = 32000, kHeads = 16,
                  kHeadSize = 64, kLength = 1024;
constexpr int kRuns = 21;

template <typename T>
DeviceArray<T> zeros(int64_t size) {
  DeviceArray<T> array(static_cast<std::size_t>(size));
  FARSTEP_CUDA_CHECK(cudaMemset(array.data(), 0, array.size() * sizeof(T)));
  return array;
}

double median_seconds(const std::function<cudaError_t()>& launch) {
  cudaEvent_t began = nullptr, ended = nullptr;
  FARSTEP_CUDA_CHECK(cudaEventCreate(&began));
  FARSTEP_CUDA_CHECK(cudaEventCreate(&ended));
  std::vector<float> milliseconds(kRuns);
  for (float& own : milliseconds) {
    FARSTEP_CUDA_CHECK(cudaEventRecord(began, nullptr));
    FARSTEP_CUDA_CHECK(launch());
    FARSTEP_CUDA_CHECK(cudaEventRecord(ended, nullptr));
    FARSTEP_CUDA_CHECK(cudaEventSynchronize(ended));
    FARSTEP_CUDA_CHECK(cudaEventElapsedTime(&own, began, ended));
  }
  cudaEventDestroy(began);
  cudaEventDestroy(ended);
  std::ranges::nth_element(milliseconds, milliseconds.begin() + kRuns / 2);
  return milliseconds[kRuns / 2] / 1e3;
}

double copy_bytes_per_second() {
  constexpr std::size_t kBytes = std::size_t{1} << 29;
  DeviceArray<char> from(kBytes), to(kBytes);
  return 2.0 * kBytes / median_seconds([&] {
           return cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice,
                                  nullptr);
         });
}

// Prints what a kernel that must read and write so many bytes reaches.
class Table {
 public:
  explicit Table(double copy) : copy_(copy) {
    fmt::print("result: copy {:.0f} GB/s, read and written\n", copy / 1e9);
  }
  void line(const char* name, int64_t bytes, const std::function<cudaError_t()>& launch) const {
    const double seconds = median_seconds(launch);
    const double rate = static_cast<double>(bytes) / seconds;
    fmt::print("result: {:<22} {:7.1f} us {:6.0f} GB/s, {:.2f} of a copy\n", name, seconds * 1e6,
               rate / 1e9, rate / copy_);
  }

 private:
  double copy_;
};

std::vector<int64_t> zipf_tokens(int64_t rows) {
  std::vector<double> shares;
  for (int64_t token = 0; token < kVocabulary; ++token) {
    shares.push_back(1 / (static_cast<double>(token) + 1 + 2.7));
  }
  std::discrete_distribution<int64_t> token(shares.begin(), shares.end());
  std::mt19937 random(1);
  std::vector<int64_t> tokens(static_cast<std::size_t>(rows));
  for (auto& own : tokens) own = token(random);
  return tokens;
}

void measure_embedding(const Table& table, int64_t rows) {
  const int64_t values = rows * kHidden;
  const auto ids = zipf_tokens(rows);
  const auto num_tokens = std::ssize(std::set<int64_t>(ids.begin(), ids.end()));
  const DeviceArray<int64_t> tokens{std::span<const int64_t>(ids)};
  auto x = zeros<float>(values), embedding = zeros<float>(kVocabulary * kHidden);
  table.line("embedding", values * 8, [&] {
    return launch_embed(embedding.data(), tokens.data(), rows, kHidden, x.data(), nullptr);
  });
  EmbedRoom room;
  ArenaCutter counter(nullptr);
  FARSTEP_CUDA_CHECK(cut_embed_room(counter, rows, kHidden, room));
  auto memory = zeros<std::byte>(counter.bytes());
  ArenaCutter cutter(memory.data());
  FARSTEP_CUDA_CHECK(cut_embed_room(cutter, rows, kHidden, room));
  // Every row of x is read, and the table's row of every token that occurs read and written.
  table.line("embedding backward", values * 4 + num_tokens * kHidden * 8, [&] {
    return launch_embed_backward({.x_gradient = x.data(),
                                  .tokens = tokens.data(),
                                  .rows = rows,
                                  .width = kHidden,
                                  .vocabulary = kVocabulary},
                                 room, embedding.data(), nullptr);
  });
}

void measure_rows(const Table& table, int64_t rows) {
  const int64_t values = rows * kHidden;
  auto x = zeros<float>(values), dx = zeros<float>(values), stream = zeros<float>(values);
  auto y = zeros<BF16>(values);
  auto weight = zeros<float>(kHidden), weight_gradient = zeros<float>(kHidden);
  auto inverse = zeros<float>(rows);
  auto parts = zeros<float>(rms_norm_parts(rows) * kHidden);
  auto largest = zeros<uint32_t>(1);
  RmsNorm forward{.x = x.data(),
                  .weight = weight.data(),
                  .rows = rows,
                  .width = kHidden,
                  .epsilon = 1e-5F,
                  .y = y.data(),
                  .inverse_rms = inverse.data()};
  table.line("norm", values * 6, [&] { return launch_rms_norm(forward, nullptr); });
  auto branch = zeros<BF16>(values);
  forward.branch = branch.data();
  forward.sum = stream.data();
  table.line("addition and norm", values * 12, [&] { return launch_rms_norm(forward, nullptr); });
  forward.largest = largest.data();
  table.line("the same, and largest", values * 12,
             [&] { return launch_rms_norm(forward, nullptr); });
  const RmsNormBackward backward{.y_gradient = branch.data(),
                                 .x = x.data(),
                                 .weight = weight.data(),
                                 .inverse_rms = inverse.data(),
                                 .rows = rows,
                                 .width = kHidden,
                                 .x_gradient = stream.data(),
                                 .copy = y.data()};
  table.line("norm backward", values * 16, [&] {
    return launch_rms_norm_backward(backward, weight_gradient.data(), true, parts.data(), nullptr);
  });
}

void measure_heads(const Table& table, int64_t rows) {
  auto cosines = zeros<float>(kLength * kHeadSize / 2), sines = zeros<float>(cosines.size());
  const RotaryRows shape{.sequence_length = kLength,
                         .rotated_heads = 2 * kHeads,
                         .other_heads = kHeads,
                         .head_size = kHeadSize,
                         .cosines = cosines.data(),
                         .sines = sines.data()};
  auto heads = zeros<BF16>(rows * shape.width()), joined = zeros<BF16>(rows * shape.width());
  const BF16* const first = heads.data();
  const int64_t kind = rows * kHeads * kHeadSize;
  table.line("rotation", 2 * kind * 4,
             [&] { return launch_rotate(shape, rows, heads.data(), nullptr); });
  table.line("rotation backward", 3 * kind * 4, [&] {
    return launch_rotate_back(shape, {first, first + kind, first + 2 * kind}, rows, joined.data(),
                              nullptr);
  });
}

void measure_gates(const Table& table, int64_t rows) {
  const int64_t values = rows * kIntermediate;
  auto gate_up = zeros<BF16>(2 * values), gradient = zeros<BF16>(2 * values);
  auto out = zeros<BF16>(values);
  auto largest = zeros<uint32_t>(1);
  table.line("SwiGLU", values * 6, [&] {
    return launch_swiglu(gate_up.data(), rows, kIntermediate, out.data(), nullptr, nullptr);
  });
  SwigluBackward backward{.out_gradient = out.data(),
                          .gate_up = gate_up.data(),
                          .rows = rows,
                          .width = kIntermediate,
                          .gate_up_gradient = gradient.data()};
  table.line("SwiGLU backward", values * 10,
             [&] { return launch_swiglu_backward(backward, nullptr); });
  backward.largest = largest.data();
  table.line("the same, and largest", values * 10,
             [&] { return launch_swiglu_backward(backward, nullptr); });
}

void measure_fp8(const Table& table, int64_t rows) {
  const int64_t whole_rows = rows / 16 * 16, values = whole_rows * kHidden;
  auto x = zeros<BF16>(values);
  auto codes = zeros<uint8_t>(values), transposed = zeros<uint8_t>(values);
  auto largest = zeros<uint32_t>(1);
  auto inverse_scale = zeros<float>(1);
  table.line("largest magnitude", values * 2,
             [&] { return launch_largest_magnitude(x.data(), values, largest.data(), nullptr); });
  table.line("to FP8, both ways", values * 4, [&] {
    return launch_to_fp8(Fp8Format::kE4M3, x.data(), whole_rows, kHidden, largest.data(),
                         {codes.data(), transposed.data(), inverse_scale.data()}, nullptr);
  });
}

void measure_losses(const Table& table, int64_t rows) {
  const int64_t values = rows * kVocabulary;
  auto logits = zeros<float>(values), losses = zeros<float>(rows);
  auto gradient = zeros<BF16>(values);
  auto targets = zeros<int64_t>(rows);
  table.line("cross-entropy", values * 6, [&] {
    return launch_cross_entropy(logits.data(), targets.data(), rows, kVocabulary, 1, losses.data(),
                                gradient.data(), nullptr);
  });
}

void measure_update(const Table& table) {
  constexpr int64_t kSize = 150'000'000;
  auto gradients = zeros<float>(kSize), values = zeros<float>(kSize), first = zeros<float>(kSize),
       second = zeros<float>(kSize);
  auto copy = zeros<BF16>(kSize);
  auto parts = zeros<double>(norm_parts(kSize));
  StepRequest wanted;
  wanted.update = {.learning_rate = 1e-3F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F};
  const DeviceArray<StepRequest> request{std::span<const StepRequest>(&wanted, 1)};
  auto outcome = zeros<StepOutcome>(1);
  const DecayStretch all{0, kSize, true};
  const auto cut = adamw_chunks(std::span(&all, 1));
  const DeviceArray<AdamWChunk> chunks{std::span<const AdamWChunk>(cut)};
  table.line("gradient norm", kSize * 4, [&] {
    return launch_step_outcome({.gradients = gradients.data(), .size = kSize}, request.data(),
                               parts.data(), outcome.data(), nullptr);
  });
  table.line("AdamW", kSize * 30, [&] {
    return launch_adamw(request.data(), outcome.data(), chunks.data(), std::ssize(cut),
                        {gradients.data(), values.data(), first.data(), second.data(), copy.data()},
                        nullptr);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rows = argc == 2 ? std::atoll(argv[1]) : 16384;
  if (argc > 2 || rows < kLength) {
    fmt::print(stderr, "usage: kernels_gpu [ROWS], at least {}\n", kLength);
    return 2;
  }
  return run_gpu_bench("kernels_gpu", [&] {
    const Table table(copy_bytes_per_second());
    measure_embedding(table, rows);
    measure_rows(table, rows);
    measure_heads(table, rows);
    measure_gates(table, rows);
    measure_fp8(table, rows);
    measure_losses(table, std::min<int64_t>(rows, 4096));
    measure_update(table);
  });
}
