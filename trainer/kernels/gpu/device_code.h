// Shared by a GPU's kernels: wide memory accesses, and reductions over the threads of a block.
//
// For .cu files only. Tests compile those as C++ too and emulate the GPU. One block works on a row
// of a matrix, or several blocks on a part each. Threads visit it in packs of n neighbouring
// values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

constexpr unsigned kWarp = 32;
constexpr int kMostThreads = 256;

// A kernel's blocks, and the threads of each.
struct LaunchShape {
  dim3 blocks;
  unsigned threads = 0;
};

#ifdef __CUDACC__
// Launches a kernel on the stream; returns CUDA's error code.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
                   const Arguments&... arguments) {
  kernel<<<shape.blocks, shape.threads, 0, stream>>>(arguments...);
  return cudaGetLastError();
}
#endif

// n values, which one instruction reads or writes (two instructions if they exceed 16 bytes).
template <typename T, int n>
struct alignas(std::min<int>(16, n * sizeof(T))) Pack {
  T values[n];
  __device__ T& operator[](int i) { return values[i]; }
  __device__ const T& operator[](int i) const { return values[i]; }
};

template <int n, typename T>
__device__ Pack<T, n> load(const T* values, int64_t pack) {
  return reinterpret_cast<const Pack<T, n>*>(values)[pack];
}
template <int n, typename T>
__device__ void store(T* values, int64_t pack, const Pack<T, n>& stored) {
  reinterpret_cast<Pack<T, n>*>(values)[pack] = stored;
}

// Whether all rows of `width` values in these arrays consist of aligned packs of n. Arrays may be
// null.
template <int n, typename... T>
bool are_packs(int64_t width, const T*... arrays) {
  const auto aligned = [](const auto* array) {
    using Value = std::remove_cvref_t<decltype(*array)>;
    return reinterpret_cast<uintptr_t>(array) % alignof(Pack<Value, n>) == 0;
  };
  return width % n == 0 && (aligned(arrays) && ...);
}

// Returns the number of threads for `packs` packs: whole warps, at most kMostThreads.
inline unsigned threads_for(int64_t packs, int most = kMostThreads) {
  return static_cast<unsigned>(
      std::clamp<int64_t>((packs + kWarp - 1) / kWarp * kWarp, kWarp, most));
}

// Assigns a thread to each pack of each row: rows along x; along y the blocks that divide a row
// evenly.
inline LaunchShape shape_of_rows(int64_t rows, int64_t packs) {
  const int64_t parts = (packs + kMostThreads - 1) / kMostThreads;
  return {.blocks = dim3(static_cast<unsigned>(rows), static_cast<unsigned>(parts)),
          .threads = threads_for((packs + parts - 1) / parts)};
}
__device__ inline int64_t own_row() {
  return blockIdx.x;
}
__device__ inline int64_t own_pack() {
  return int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
}

// Combines the values of all threads of the block and returns the result to all of them. The order
// depends on the number of threads only.
template <typename T, typename Combine>
__device__ T combine_over_block(T own, const Combine& combine) {
  __shared__ T of_warps[kWarp];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    own = combine(own, __shfl_xor_sync(0xffffffffU, own, distance));
  }
  __syncthreads();  // until all threads have read the previous call's values
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = own;
  __syncthreads();
  // Each warp combines the warps' values with all its lanes: reading them one after the other takes
  // longer with 32 warps.
  const unsigned lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  T all = of_warps[lane < warps ? lane : 0];
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(0xffffffffU, all, static_cast<int>(distance));
    if ((lane ^ distance) < warps) all = combine(all, other);
  }
  return __shfl_sync(0xffffffffU, all, 0);  // only lane 0 combined the values of all warps for sure
}
template <typename T>
__device__ T sum_over_block(T own) {
  return combine_over_block(own, [](T a, T b) { return a + b; });
}

}  // namespace farstep
