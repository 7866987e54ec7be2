// The program links no library of CUDA, so that one binary serves machines with and without a GPU.
// The first use of a GPU loads LibTorch's CUDA library, which registers itself.
#include "trainer/model/device.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// The default stream cannot be recorded as a graph, and it may have work of other threads.
void use_own_stream(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  if (guard.getStream(device) != guard.getDefaultStream(device)) return;
  guard.exchangeStream(guard.getStreamFromGlobalPool(device));
}

// Loading registers the library's kernels; it is never unloaded.
void load_library_for(const DeviceConfig& config) {
  if (config.kind != DeviceKind::kCuda) return;
  // Loaded at run time: the same program serves machines without CUDA's libraries.
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  throw ConfigError(fmt::format(
      "device cuda:{}: LibTorch's CUDA library cannot be loaded ({}); put the folder of a "
      "LibTorch with CUDA, and its CUDA libraries, into LD_LIBRARY_PATH, or use a cpu device",
      config.index, dlerror()));
}

at::Device open_gpu(int64_t index) {
  const auto& hooks = at::detail::getCUDAHooks();
  const int64_t present = hooks.hasCUDA() ? hooks.deviceCount() : 0;
  if (index >= present) {
    throw ConfigError(fmt::format(
        "device cuda:{}: this machine has {} usable NVIDIA GPUs{}", index, present,
        present == 0 ? "; is its driver installed, and does CUDA_VISIBLE_DEVICES leave one?"
                     : fmt::format(", which are numbered from 0: set index to {} at most, or see "
                                   "which ones CUDA_VISIBLE_DEVICES leaves",
                                   present - 1)));
  }
  // Makes cuBLAS add up in fp32 also when it splits a product.
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(index));
  use_own_stream(device);
  return device;
}

}  // namespace

void load_gpu_library(std::span<const DeviceConfig> devices) {
  for (const auto& device : devices) load_library_for(device);
}

at::Device open_device(const DeviceConfig& config) {
  load_library_for(config);
  if (config.kind == DeviceKind::kCuda) return open_gpu(config.index);
  at::set_num_threads(static_cast<int>(config.threads));
  return at::kCPU;
}

void synchronize(at::Device device) {
  if (device.is_cpu()) return;  // CPU operations are synchronous
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace farstep
