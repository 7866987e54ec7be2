#include "trainer/reduction/nccl_reduction.h"

#include <future>
#include <memory>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "trainer/base/error.h"
#include "trainer/cuda/device_array.h"

namespace farstep {

namespace {

constexpr int64_t kSize = 10'001, kBucketValues = 1000;

// Small whole numbers, whose sums are exact in any order.
std::vector<float> gradient_of(int gpu, int step) {
  std::vector<float> values;
  for (int64_t i = 0; i < kSize; ++i) {
    values.push_back(static_cast<float>((i * (gpu + 3) + step) % 101 - 50));
  }
  return values;
}

// All GPUs of this machine, with a gradient on each.
struct Site {
  Site() {
    std::vector<GpuGradients> gpus;
    for (int gpu = 0; gpu < usable_gpus(); ++gpu) {
      FARSTEP_CUDA_CHECK(cudaSetDevice(gpu));
      gradients.emplace_back(gradient_of(gpu, 0));
      gpus.push_back({.gpu = gpu, .values = gradients.back().data(), .current_stream = [] {
                        return nullptr;  // the default stream
                      }});
    }
    reduction = make_nccl_reduction(std::move(gpus), kSize, kBucketValues);
  }

  std::vector<DeviceArray<float>> gradients;
  std::unique_ptr<SiteReduction> reduction;
};

}  // namespace

// Of one GPU the sum would be its own gradient.
TEST_CASE("gradients on all GPUs become their sum on each", "[gpu]") {
  if (lacks_two_gpus()) return;
  Site site;
  for (int step = 0; step < 3; ++step) {
    site.reduction->begin_step();
    std::vector<float> wanted(kSize);
    std::vector<std::future<std::vector<float>>> running;
    for (int gpu = 0; gpu < usable_gpus(); ++gpu) {
      const auto own = gradient_of(gpu, step);
      for (std::size_t i = 0; i < own.size(); ++i) wanted[i] += own[i];
      running.push_back(std::async(std::launch::async, [&site, own, gpu] {
        const auto device = static_cast<std::size_t>(gpu);
        FARSTEP_CUDA_CHECK(cudaSetDevice(gpu));
        site.gradients[device].upload(own);
        for (int64_t end = kSize; end > 0; end -= 700) {
          site.reduction->ready(device, std::max<int64_t>(0, end - 700), end);
        }
        if (!site.reduction->finish(device)) return std::vector<float>{};
        return site.gradients[device].download();
      }));
    }
    for (auto& one : running) CHECK(one.get() == wanted);
  }
}

TEST_CASE("a step that was abandoned is the last of GPUs", "[gpu]") {
  if (lacks_gpu()) return;
  Site site;
  site.reduction->begin_step();
  site.reduction->ready(0, kSize / 2, kSize);
  site.reduction->abandon();
  CHECK(!site.reduction->finish(0));
  CHECK_THROWS_AS(site.reduction->begin_step(), InternalError);
}

}  // namespace farstep
