// The sum needs memory that all devices reach: host memory for CPU slices, NCCL for GPUs. All else
// falls back to the first device, which is always possible.
#include "trainer/inner/make_reduction.h"

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "trainer/reduction/host_reduction.h"
#include "trainer/reduction/nccl_reduction.h"

namespace farstep {

namespace {

// Values of one thread's piece. A sum of fewer takes less time than waking another thread.
constexpr int64_t kGrainValues = 1 << 14;

std::unique_ptr<SiteReduction> on_host(const std::vector<at::Tensor>& gradients) {
  std::vector<std::span<float>> spans;
  for (const auto& gradient : gradients) {
    spans.emplace_back(gradient.mutable_data_ptr<float>(),
                       static_cast<std::size_t>(gradient.numel()));
  }
  return std::make_unique<HostReduction>(
      std::move(spans), host_bucket_values(gradients.front().numel()),
      [](int64_t begin, int64_t end, const std::function<void(int64_t, int64_t)>& work) {
        at::parallel_for(begin, end, kGrainValues, work);
      });
}

// Null in a build without NCCL.
std::unique_ptr<SiteReduction> on_gpus([[maybe_unused]] const std::vector<at::Tensor>& gradients) {
#ifdef FARSTEP_HAS_NCCL
  std::vector<GpuGradients> gpus;
  for (const auto& gradient : gradients) {
    gpus.push_back(
        {.gpu = gradient.device().index(),
         .values = gradient.mutable_data_ptr<float>(),
         .current_stream = [device = gradient.device()] {
           return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
         }});
  }
  const int64_t size = gradients.front().numel();
  return make_nccl_reduction(std::move(gpus), size, gpu_bucket_values(size));
#else
  return nullptr;
#endif
}

}  // namespace

std::unique_ptr<SiteReduction> make_reduction(const InnerConfig& config,
                                              const SiteDevices& devices) {
  if (devices.size() == 1 || config.reduction == ReductionKind::kMaster) return nullptr;
  std::vector<at::Tensor> gradients;
  std::set<at::DeviceIndex> gpus;
  for (std::size_t device = 0; device < devices.size(); ++device) {
    gradients.push_back(devices.model(device).parameters().gradients());
    if (gradients.back().is_cuda()) gpus.insert(gradients.back().device().index());
  }
  if (std::ranges::all_of(gradients, [](const auto& gradient) { return gradient.is_cpu(); })) {
    return on_host(gradients);
  }
  // NCCL refuses two ranks on one GPU.
  auto reduction = gpus.size() == devices.size() ? on_gpus(gradients) : nullptr;
  if (!reduction) {
    spdlog::warn(
        "inner.reduction: buckets needs CPU slices alone, or GPUs alone, each another one, and "
        "Farstep built with NCCL: the first device adds up and updates, as with master");
  }
  return reduction;
}

}  // namespace farstep
