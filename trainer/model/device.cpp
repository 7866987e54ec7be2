#include "trainer/model/device.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// The default stream cannot be recorded, and another thread's work may be on it.
void use_own_stream(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  if (guard.getStream(device) != guard.getDefaultStream(device)) return;
  guard.exchangeStream(guard.getStreamFromGlobalPool(device));
}

at::Device open_gpu(int64_t index) {
  // The library registers its kernels as it is loaded, and stays for the process's life.
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw ConfigError(fmt::format(
        "device cuda:{}: LibTorch's CUDA library cannot be loaded ({}); put the folder of a "
        "LibTorch with CUDA, and its CUDA libraries, into LD_LIBRARY_PATH, or use a cpu device",
        index, dlerror()));
  }
  const auto& hooks = at::detail::getCUDAHooks();
  const int64_t present = hooks.hasCUDA() ? hooks.deviceCount() : 0;
  if (index >= present) {
    throw ConfigError(fmt::format("device cuda:{}: this machine has {} usable NVIDIA GPUs{}", index,
                                  present, present == 0 ? "; is its driver installed?" : ""));
  }
  // Sums in fp32, also those of a product that cuBLAS splits.
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(index));
  use_own_stream(device);
  return device;
}

}  // namespace

at::Device open_device(const DeviceConfig& config) {
  if (config.kind == DeviceKind::kCuda) return open_gpu(config.index);
  at::set_num_threads(static_cast<int>(config.threads));
  return at::kCPU;
}

void synchronize(at::Device device) {
  if (device.is_cpu()) return;  // its operations return when they are done
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace farstep
