#include "trainer/kernels/gpu/fp8.h"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

#include "trainer/kernels/gpu/device_code.h"
#include "trainer/kernels/gpu/largest_magnitude.h"

namespace farstep {

namespace {

// 16 bytes of bf16 and of codes: the widest memory access.
constexpr int kReadPack = 8, kTransposedPack = 16;
// A block converts a square of this size: a column of it is then 64 bytes of the transposed matrix,
// two sectors of memory.
constexpr int kTile = 64;

// Does the same as fp8_code, by the GPU's own instruction where it exists.
template <Fp8Format format>
__device__ inline uint8_t code_of(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr auto kKind = format == Fp8Format::kE4M3 ? __NV_E4M3 : __NV_E5M2;
  // The instruction would saturate infinity to the largest value.
  return isfinite(x) ? __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kKind) : kFp8Nan;
#else
  return fp8_code<format>(x);
#endif
}

__global__ void __launch_bounds__(kMostThreads)
    find_largest(const BF16* x, int64_t packs, uint32_t* word) {
  uint32_t largest = 0;
  for (int64_t pack = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; pack < packs;
       pack += int64_t{gridDim.x} * blockDim.x) {
    const auto own = load<kReadPack>(x, pack);
    for (int i = 0; i < kReadPack; ++i) largest = larger_of(largest, magnitude_bits(own[i]));
  }
  raise_to_largest(largest, word);
}

template <Fp8Format format>
__global__ void __launch_bounds__(kMostThreads)
    convert_tile(const BF16* x, int64_t rows, int64_t columns, const uint32_t* largest,
                 Fp8Matrix to) {
  const auto scale = fp8_scale<format>(*largest);
  // One thread of all writes what the product needs to undo the scale.
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *to.inverse_scale = scale.inverse;

  // Four bytes of padding a row: without them the values of a column would fall into few banks.
  __shared__ uint8_t tile[kTile][kTile + 4];
  const int64_t first_row = int64_t{blockIdx.y} * kTile, first_column = int64_t{blockIdx.x} * kTile;
  constexpr int kReads = kTile / kReadPack;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kReads; i += kMostThreads) {
    const int in_row = i / kReads, in_column = i % kReads * kReadPack;
    const int64_t row = first_row + in_row, column = first_column + in_column;
    if (row >= rows || column >= columns) continue;
    const int64_t pack = (row * columns + column) / kReadPack;
    const auto own = load<kReadPack>(x, pack);
    Pack<uint8_t, kReadPack> codes;
    for (int j = 0; j < kReadPack; ++j) {
      codes[j] = code_of<format>(to_float(own[j]) * scale.factor);
      tile[in_row][in_column + j] = codes[j];
    }
    if (to.codes != nullptr) store<kReadPack>(to.codes, pack, codes);
  }
  if (to.transposed == nullptr) return;
  __syncthreads();
  constexpr int kWrites = kTile / kTransposedPack;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kWrites; i += kMostThreads) {
    const int in_column = i / kWrites, in_row = i % kWrites * kTransposedPack;
    const int64_t row = first_row + in_row, column = first_column + in_column;
    if (row >= rows || column >= columns) continue;
    Pack<uint8_t, kTransposedPack> codes;
    for (int j = 0; j < kTransposedPack; ++j) codes[j] = tile[in_row + j][in_column];
    store<kTransposedPack>(to.transposed, (column * rows + row) / kTransposedPack, codes);
  }
}

}  // namespace

cudaError_t launch_largest_magnitude(const BF16* x, int64_t size, uint32_t* largest,
                                     cudaStream_t stream) {
  if (!are_packs<kReadPack>(size, x)) return cudaErrorInvalidValue;
  if (size == 0) return cudaSuccess;
  const int64_t packs = size / kReadPack;
  // Enough blocks to occupy every multiprocessor; more would only add atomic operations.
  constexpr int64_t kMostBlocks = 512;
  const int64_t blocks = std::min(kMostBlocks, (packs + kMostThreads - 1) / kMostThreads);
  return launch(find_largest,
                {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = kMostThreads}, stream, x,
                packs, largest);
}

cudaError_t launch_to_fp8(Fp8Format format, const BF16* x, int64_t rows, int64_t columns,
                          const uint32_t* largest, const Fp8Matrix& to, cudaStream_t stream) {
  // The fp8 products of cuBLAS take no other sizes either.
  if (rows % 16 != 0 || !are_packs<16>(columns, x, to.codes, to.transposed)) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0 || columns == 0) return cudaSuccess;
  const auto tiles = [](int64_t size) { return static_cast<unsigned>((size + kTile - 1) / kTile); };
  return launch(
      format == Fp8Format::kE4M3 ? convert_tile<Fp8Format::kE4M3> : convert_tile<Fp8Format::kE5M2>,
      {.blocks = dim3(tiles(columns), tiles(rows)), .threads = kMostThreads}, stream, x, rows,
      columns, largest, to);
}

}  // namespace farstep
