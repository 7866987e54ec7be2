// Turns errors of the CUDA runtime into exceptions, and counts the usable GPUs.
//
// Only in builds with a CUDA toolkit. A failed call throws InternalError with its text and CUDA's
// message. Lack of memory throws a class of its own, because the caller can try less work.
// Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include "trainer/base/error.h"

namespace farstep {

// An allocation on a GPU failed because its memory is full. The GPU can still be used.
class OutOfDeviceMemory : public InternalError {
 public:
  using InternalError::InternalError;
};

// Returns the number of GPUs that this process can use; 0 if there is no driver.
int usable_gpus();

namespace detail {

// Throws OutOfDeviceMemory or InternalError unless `error` is cudaSuccess.
void check_cuda(cudaError_t error, const char* file, int line, const char* call);

}  // namespace detail

}  // namespace farstep

// Calls the CUDA runtime and throws if the call fails. FARSTEP_CUDA_CHECK(cudaGetLastError())
// checks a launch. A later call reports an error that happens while a kernel runs.
#define FARSTEP_CUDA_CHECK(call) ::farstep::detail::check_cuda((call), __FILE__, __LINE__, #call)
