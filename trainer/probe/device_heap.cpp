// Memory is measured through LibTorch's allocator, as that is what training asks: it keeps freed
// blocks, which the driver counts as used.
#include "trainer/probe/device_heap.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <memory>

namespace farstep {

heterogeneity::DeviceHeap heap_of(at::Device gpu) {
  at::empty({1}, at::TensorOptions(gpu));  // initialises LibTorch's allocator
  auto* const allocator = at::getDeviceAllocator(gpu.type());
  return {.free_bytes =
              [=] { return static_cast<int64_t>(allocator->getMemoryInfo(gpu.index()).first); },
          .occupy =
              [gpu](int64_t bytes) {
                const auto options = at::TensorOptions(gpu).dtype(at::kByte);
                return std::make_shared<at::Tensor>(at::empty({bytes}, options));
              },
          .empty_cache = [allocator] { allocator->emptyCache(); }};
}

}  // namespace farstep
