// What the kernels of a GPU share: wide accesses to memory, and sums over the threads of a block.
//
// For .cu files only; tests compile those as C++ too, and play the GPU themselves. A row of a
// matrix is worked on by a block, or by several blocks with a part each; threads go over it in
// packs of n neighbouring values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/bf16.h"

namespace farstep {

constexpr unsigned kWarp = 32;
constexpr int kMostThreads = 256;

// A kernel's blocks, the threads of each, and the bytes of shared memory it asks for.
struct LaunchShape {
  dim3 blocks;
  unsigned threads = 0;
  std::size_t shared_bytes = 0;
};

#ifdef __CUDACC__
// Gives the stream a kernel; returns what CUDA says of that.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
                   const Arguments&... arguments) {
  kernel<<<shape.blocks, shape.threads, shape.shared_bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

// The shared memory that a kernel asked for.
__device__ inline void* shared_memory() {
  extern __shared__ float4 memory[];
  return memory;
}
#endif

// n values that one instruction reads or writes, or two where they are more than 16 bytes.
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

// Whether all rows of `width` values in these arrays, of which some may be null, are packs of n.
template <int n, typename... T>
bool are_packs(int64_t width, const T*... arrays) {
  const auto aligned = [](const auto* array) {
    using Value = std::remove_cvref_t<decltype(*array)>;
    return reinterpret_cast<uintptr_t>(array) % alignof(Pack<Value, n>) == 0;
  };
  return width % n == 0 && (aligned(arrays) && ...);
}

// Whole warps for so many packs, kMostThreads at most.
inline unsigned threads_for(int64_t packs, int most = kMostThreads) {
  return static_cast<unsigned>(
      std::clamp<int64_t>((packs + kWarp - 1) / kWarp * kWarp, kWarp, most));
}

// A thread for every pack of every row: rows along x, and along y blocks that share a row evenly.
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

// What `combine` makes of the values of all threads of the block, which all of them get; in an
// order that depends on the number of threads alone.
template <typename T, typename Combine>
__device__ T combine_over_block(T own, const Combine& combine) {
  __shared__ T of_warps[kWarp];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    own = combine(own, __shfl_xor_sync(0xffffffffU, own, distance));
  }
  __syncthreads();  // whoever read the last call's has done so
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = own;
  __syncthreads();
  T all = of_warps[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) all = combine(all, of_warps[warp]);
  return all;
}
template <typename T>
__device__ T sum_over_block(T own) {
  return combine_over_block(own, [](T a, T b) { return a + b; });
}

}  // namespace farstep
