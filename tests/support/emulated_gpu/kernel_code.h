// Lets a C++ compiler take a .cu file: the words of the language that kernels use, and a launch
// that runs them on the CPU, block after block.
//
// Included before everything else. The threads of a block take turns at barriers and shuffles, of
// which all must come to the same ones; a launch throws where they do not. Not thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <functional>

#define __global__
#define __device__
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace farstep {

// Of the launches from now on only the blocks that this chooses run, by their place along x and the
// number of those; all of them where it is empty. For arrays too large to work on as a whole.
inline std::function<bool(unsigned x, unsigned blocks)> emulated_choice;

// Room for one value of every thread of a block.
void* emulated_slot(unsigned thread);
// Goes on when all threads of the block have come to it.
void emulated_barrier();
// Runs every thread of every block.
void run_emulated(const dim3& blocks, unsigned threads, const std::function<void()>& thread);

}  // namespace farstep

inline void __syncthreads() {
  farstep::emulated_barrier();
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int distance) {
  *static_cast<T*>(farstep::emulated_slot(threadIdx.x)) = value;
  farstep::emulated_barrier();
  const auto partner = threadIdx.x ^ static_cast<unsigned>(distance);
  const T other = *static_cast<const T*>(farstep::emulated_slot(partner));
  farstep::emulated_barrier();
  return other;
}

template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  *static_cast<T*>(farstep::emulated_slot(threadIdx.x)) = value;
  farstep::emulated_barrier();
  const auto source = threadIdx.x / 32 * 32 + static_cast<unsigned>(lane);
  const T other = *static_cast<const T*>(farstep::emulated_slot(source));
  farstep::emulated_barrier();
  return other;
}
inline uint32_t atomicMax(uint32_t* word, uint32_t value) {
  const uint32_t before = *word;
  if (before < value) *word = value;
  return before;
}

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
                   const Arguments&... arguments) {
  return emulate_work(
      [=] { run_emulated(shape.blocks, shape.threads, [&] { kernel(arguments...); }); }, stream);
}

}  // namespace farstep
