// How fast codecs are on a GPU, beside its copying of memory.
//
//   device_codec_bench [REPEATS]
//
// Speeds are GB of fp32 a second over 256 MiB of Gaussian values, the best of REPEATS (20). "floor"
// is the share of the time that reading and writing what the kernel must takes at the speed of a
// copy.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "outer_optimizer/codec/block_codecs.h"
#include "outer_optimizer/codec/device_codec.h"
#include "outer_optimizer/codec/float_codecs.h"
#include "tests/bench/gpu_bench.h"
#include "trainer/cuda/device_array.h"

using namespace farstep;

namespace {

constexpr int64_t kValues = 64 << 20;
constexpr double kBytes = kValues * sizeof(float);

double best_seconds(int repeats, const std::function<void()>& launch) {
  cudaEvent_t began = nullptr;
  cudaEvent_t ended = nullptr;
  FARSTEP_CUDA_CHECK(cudaEventCreate(&began));
  FARSTEP_CUDA_CHECK(cudaEventCreate(&ended));
  float best_milliseconds = 1e9F;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    FARSTEP_CUDA_CHECK(cudaEventRecord(began, nullptr));
    launch();
    FARSTEP_CUDA_CHECK(cudaEventRecord(ended, nullptr));
    FARSTEP_CUDA_CHECK(cudaEventSynchronize(ended));
    float milliseconds = 0;
    FARSTEP_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, began, ended));
    best_milliseconds = std::min(best_milliseconds, milliseconds);
  }
  cudaEventDestroy(began);
  cudaEventDestroy(ended);
  return best_milliseconds / 1e3;
}

void measure(const outer_optimizer::Codec& codec, int repeats, double copy_bytes_per_second,
             const DeviceArray<float>& values, DeviceArray<float>& other) {
  const auto device = make_device_codec(codec);
  const auto size_bytes = codec.encoded_bytes(kValues);
  DeviceArray<std::byte> bytes(static_cast<std::size_t>(size_bytes));
  // `moved`: bytes that must be read and written.
  const auto print = [&](const char* what, double moved, const std::function<void()>& launch) {
    const double seconds = best_seconds(repeats, launch);
    fmt::print("result: {} {:<8} {:8.0f} GB/s, floor {:.2f}\n", codec.name(), what,
               kBytes / seconds / 1e9, moved / copy_bytes_per_second / seconds);
  };
  const auto encoded = static_cast<double>(size_bytes);
  print("encode", kBytes + encoded,
        [&] { device->encode(values.data(), kValues, bytes.data(), nullptr); });
  print("feedback", 2 * kBytes + encoded, [&] {
    device->encode_with_feedback(values.data(), kValues, bytes.data(), other.data(), nullptr);
  });
  print("decode", kBytes + encoded,
        [&] { device->decode(bytes.data(), kValues, other.data(), nullptr); });
  print("add", 2 * kBytes + encoded,
        [&] { device->add_decoded(bytes.data(), kValues, 0.25F, other.data(), nullptr); });
}

void run(int repeats) {
  std::vector<float> host(kValues);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& value : host) value = normal(random);
  const DeviceArray<float> values{std::span<const float>(host)};
  DeviceArray<float> other(values.size());
  const double copy = best_seconds(repeats, [&] {
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(other.data(), values.data(),
                                       static_cast<std::size_t>(kBytes), cudaMemcpyDeviceToDevice,
                                       nullptr));
  });
  const double copy_bytes_per_second = 2 * kBytes / copy;
  fmt::print("result: copy {:.0f} GB/s, read and written\n", copy_bytes_per_second / 1e9);
  measure(outer_optimizer::Fp16Codec(), repeats, copy_bytes_per_second, values, other);
  measure(outer_optimizer::Bf16Codec(), repeats, copy_bytes_per_second, values, other);
  measure(outer_optimizer::Int8Codec(), repeats, copy_bytes_per_second, values, other);
  measure(outer_optimizer::Int4Codec(), repeats, copy_bytes_per_second, values, other);
  measure(outer_optimizer::Int2Codec(), repeats, copy_bytes_per_second, values, other);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc == 2 ? std::atoi(argv[1]) : 20;
  if (argc > 2 || repeats < 1) {
    fmt::print(stderr, "usage: device_codec_bench [REPEATS]\n");
    return 2;
  }
  return run_gpu_bench("device_codec_bench", [&] { run(repeats); });
}
