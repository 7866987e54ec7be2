// Errors of the CUDA runtime as exceptions, and whether there is a GPU to use.
//
// Only built with a CUDA toolkit. A call that is checked throws InternalError with the call's text
// and CUDA's message; memory that ran out has a kind of its own, as less work then helps.
// Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include "trainer/base/error.h"

namespace farstep {

// An allocation on a GPU failed for want of memory; nothing else is broken.
class OutOfDeviceMemory : public InternalError {
 public:
  using InternalError::InternalError;
};

// GPUs that this process can use; 0 without a driver too.
int usable_gpus();

namespace detail {

// Throws OutOfDeviceMemory or InternalError unless `error` is cudaSuccess.
void check_cuda(cudaError_t error, const char* file, int line, const char* call);

}  // namespace detail

}  // namespace farstep

// Makes a call of the CUDA runtime; throws as told above. A launch is checked by
// FARSTEP_CUDA_CHECK(cudaGetLastError()); what fails while a kernel runs is told by a later call.
#define FARSTEP_CUDA_CHECK(call) ::farstep::detail::check_cuda((call), __FILE__, __LINE__, #call)
