#include "trainer/kernels/gpu/fp8.h"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

constexpr int kReadPack = 8, kTransposedPack = 16;
// A block's part of a matrix, as wide as it is high.
constexpr int kTile = 64;

__device__ inline uint32_t largest_over_block(uint32_t own) {
  return combine_over_block(own, [](uint32_t a, uint32_t b) { return a < b ? b : a; });
}

// fp8_code by the GPU's own instruction, where it has one.
template <Fp8Format format>
__device__ inline uint8_t code_of(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr auto kKind = format == Fp8Format::kE4M3 ? __NV_E4M3 : __NV_E5M2;
  // It would take infinity for a large number.
  return isfinite(x) ? __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kKind) : kFp8Nan;
#else
  return fp8_code<format>(x);
#endif
}

__global__ void __launch_bounds__(kMostThreads)
    find_largest(const BF16* x, int64_t packs, uint32_t* parts) {
  uint32_t largest = 0;
  for (int64_t pack = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; pack < packs;
       pack += int64_t{gridDim.x} * blockDim.x) {
    const auto own = load<kReadPack>(x, pack);
    for (int i = 0; i < kReadPack; ++i) {
      const uint32_t magnitude = magnitude_bits(own[i]);
      largest = largest < magnitude ? magnitude : largest;
    }
  }
  largest = largest_over_block(largest);
  if (threadIdx.x == 0) parts[blockIdx.x] = largest;
}

template <Fp8Format format>
__global__ void __launch_bounds__(kMostThreads)
    convert_tile(const BF16* x, int64_t rows, int64_t columns, const uint32_t* parts,
                 unsigned part_count, Fp8Matrix to) {
  const auto scale =
      fp8_scale<format>(largest_over_block(threadIdx.x < part_count ? parts[threadIdx.x] : 0));
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *to.inverse_scale = scale.inverse;

  // Rows a little longer than the tile's, as else those of one column would share few banks.
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

cudaError_t launch_to_fp8(Fp8Format format, const BF16* x, int64_t rows, int64_t columns,
                          uint32_t* parts, const Fp8Matrix& to, cudaStream_t stream) {
  static_assert(kFp8Parts <= kMostThreads);
  if (rows % 16 != 0 || !are_packs<16>(columns, x, to.codes, to.transposed)) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0 || columns == 0) return cudaSuccess;
  const int64_t packs = rows * columns / kReadPack;
  const auto part_count = static_cast<unsigned>(
      std::min<int64_t>(kFp8Parts, (packs + kMostThreads - 1) / kMostThreads));
  const cudaError_t error = launch(
      find_largest, {.blocks = dim3(part_count), .threads = kMostThreads}, stream, x, packs, parts);
  if (error != cudaSuccess) return error;
  const auto tiles = [](int64_t size) { return static_cast<unsigned>((size + kTile - 1) / kTile); };
  return launch(
      format == Fp8Format::kE4M3 ? convert_tile<Fp8Format::kE4M3> : convert_tile<Fp8Format::kE5M2>,
      {.blocks = dim3(tiles(columns), tiles(rows)), .threads = kMostThreads}, stream, x, rows,
      columns, parts, part_count, to);
}

}  // namespace farstep
