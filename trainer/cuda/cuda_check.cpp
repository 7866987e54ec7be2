#include "trainer/cuda/cuda_check.h"

namespace farstep {

int usable_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // clears the error, which the next check would report otherwise
  return 0;
}

namespace detail {

void check_cuda(cudaError_t error, const char* file, int line, const char* call) {
  if (error == cudaSuccess) return;
  // Cleared, so that the next check does not report the same error again.
  cudaGetLastError();
  const auto message = fmt::format("{}:{}: {}: {} ({})", file, line, call,
                                   cudaGetErrorString(error), cudaGetErrorName(error));
  if (error == cudaErrorMemoryAllocation) throw OutOfDeviceMemory(message);
  throw InternalError(message);
}

}  // namespace detail

}  // namespace farstep
