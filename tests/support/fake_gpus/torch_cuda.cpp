// Stands in for LibTorch's CUDA library on machines without it: says that there is one GPU, to
// whoever asks LibTorch for GPUs after it was loaded. Nothing can be done with that GPU.
#include <ATen/detail/CUDAHooksInterface.h>

namespace at {

namespace {

// LibTorch looks for a class of this name.
class CUDAHooks : public CUDAHooksInterface {
 public:
  explicit CUDAHooks(CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
};

}  // namespace

REGISTER_CUDA_HOOKS(CUDAHooks);

}  // namespace at
