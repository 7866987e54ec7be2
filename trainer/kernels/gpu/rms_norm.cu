#include "trainer/kernels/gpu/rms_norm.h"

#include "trainer/kernels/gpu/device_code.h"
#include "trainer/kernels/gpu/largest_magnitude.h"

namespace farstep {

namespace {

// Each block computes a row. The second pass over it finds it in the cache.
template <int n>
__global__ void __launch_bounds__(kMostThreads) normalise_rows(RmsNorm norm) {
  const int64_t packs = norm.width / n, first = own_row() * packs;
  const float* source = norm.x;
  float squares = 0;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    auto own = load<n>(norm.x, first + pack);
    if (norm.branch != nullptr) {
      const auto added = load<n>(norm.branch, first + pack);
      for (int i = 0; i < n; ++i) own[i] += to_float(added[i]);
      store<n>(norm.sum, first + pack, own);
    }
    for (int i = 0; i < n; ++i) squares += own[i] * own[i];
  }
  if (norm.branch != nullptr) source = norm.sum;  // each thread reads only its own writes
  const float inverse = inverse_rms_of(sum_over_block(squares), norm.width, norm.epsilon);
  if (threadIdx.x == 0) norm.inverse_rms[own_row()] = inverse;
  uint32_t largest = 0;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    const auto own = load<n>(source, first + pack);
    const auto weights = load<n>(norm.weight, pack);
    Pack<BF16, n> normal;
    for (int i = 0; i < n; ++i) {
      normal[i] = rounded<BF16>(own[i] * inverse * weights[i]);
      largest = larger_of(largest, magnitude_bits(normal[i]));
    }
    store<n>(norm.y, first + pack, normal);
  }
  if (norm.largest != nullptr) raise_to_largest(largest, norm.largest);
}

template <int n>
__device__ float product_of(const Pack<BF16, n>& dy, const Pack<float, n>& x,
                            const Pack<float, n>& weights) {
  float product = 0;
  for (int i = 0; i < n; ++i) product += to_float(dy[i]) * weights[i] * x[i];
  return product;
}

// What the second pass over a row needs of the first.
struct RowFactors {
  float inverse, lost;

  __device__ RowFactors(const RmsNormBackward& norm, int64_t row, float product)
      : inverse(norm.inverse_rms[row]), lost(rms_norm_loss(product, inverse, norm.width)) {}
};

// Adds to the gradients in the weights and in x, stores the latter, and returns its largest
// magnitude.
template <int n>
__device__ uint32_t differentiate_pack(const RmsNormBackward& norm, int64_t pack,
                                       const RowFactors& row, const Pack<BF16, n>& dy,
                                       const Pack<float, n>& x, const Pack<float, n>& weights,
                                       Pack<float, n>& weight_sums, Pack<float, n> dx) {
  uint32_t largest = 0;
  Pack<BF16, n> rounded_dx;
  for (int i = 0; i < n; ++i) {
    const float gradient = to_float(dy[i]);
    weight_sums[i] += gradient * x[i] * row.inverse;
    dx[i] += gradient * weights[i] * row.inverse - x[i] * row.lost;
    rounded_dx[i] = rounded<BF16>(dx[i]);
    largest = larger_of(largest, magnitude_bits(rounded_dx[i]));
  }
  store<n>(norm.x_gradient, pack, dx);
  store<n>(norm.copy, pack, rounded_dx);
  return largest;
}

// A thread's part of a row: kKept packs, of which the last may lie beyond the row.
template <int n, int kKept>
struct RowPart {
  Pack<BF16, n> dy[kKept];
  Pack<float, n> x[kKept], dx[kKept];

  static __device__ int64_t pack_of(int k) { return threadIdx.x + int64_t{k} * blockDim.x; }

  __device__ RowPart(const RmsNormBackward& norm, int64_t row, int64_t packs) {
    for (int k = 0; k < kKept && pack_of(k) < packs; ++k) {
      const int64_t pack = row * packs + pack_of(k);
      dy[k] = load<n>(norm.y_gradient, pack);
      x[k] = load<n>(norm.x, pack);
      dx[k] = load<n>(norm.x_gradient, pack);
    }
  }
};

// Each block visits every gridDim.x-th row, and writes their part of the weight's gradient to a row
// of `parts`. Each thread keeps its columns of the row, the weights and the part in registers. It
// reads the next row before the sum over the block, for which all threads wait.
template <int n, int kKept>
__global__ void __launch_bounds__(kMostThreads)
    differentiate_kept_rows(RmsNormBackward norm, float* parts) {
  using Part = RowPart<n, kKept>;
  const int64_t packs = norm.width / n;
  Pack<float, n> weights[kKept]{}, sums[kKept]{};
  for (int k = 0; k < kKept && Part::pack_of(k) < packs; ++k) {
    weights[k] = load<n>(norm.weight, Part::pack_of(k));
  }
  uint32_t largest = 0;
  Part next(norm, blockIdx.x, packs);
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    const auto own = next;
    if (row + gridDim.x < norm.rows) next = Part(norm, row + gridDim.x, packs);
    float product = 0;
    for (int k = 0; k < kKept && Part::pack_of(k) < packs; ++k) {
      product += product_of(own.dy[k], own.x[k], weights[k]);
    }
    const RowFactors factors(norm, row, sum_over_block(product));
    for (int k = 0; k < kKept && Part::pack_of(k) < packs; ++k) {
      largest = larger_of(
          largest, differentiate_pack(norm, row * packs + Part::pack_of(k), factors, own.dy[k],
                                      own.x[k], weights[k], sums[k], own.dx[k]));
    }
  }
  if (norm.largest != nullptr) raise_to_largest(largest, norm.largest);
  for (int k = 0; k < kKept && Part::pack_of(k) < packs; ++k) {
    store<n>(parts, blockIdx.x * packs + Part::pack_of(k), sums[k]);
  }
}

// The same for rows of any width. The second pass over a row finds it in the cache.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    differentiate_rows(RmsNormBackward norm, float* parts) {
  const int64_t packs = norm.width / n;
  float* const sums = parts + blockIdx.x * norm.width;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    store<n>(sums, pack, Pack<float, n>{});
  }
  uint32_t largest = 0;
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    const int64_t first = row * packs;
    float product = 0;
    for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
      product += product_of(load<n>(norm.y_gradient, first + pack), load<n>(norm.x, first + pack),
                            load<n>(norm.weight, pack));
    }
    const RowFactors factors(norm, row, sum_over_block(product));
    for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
      auto sum = load<n>(sums, pack);
      largest = larger_of(
          largest,
          differentiate_pack(norm, first + pack, factors, load<n>(norm.y_gradient, first + pack),
                             load<n>(norm.x, first + pack), load<n>(norm.weight, pack), sum,
                             load<n>(norm.x_gradient, first + pack)));
      store<n>(sums, pack, sum);
    }
  }
  if (norm.largest != nullptr) raise_to_largest(largest, norm.largest);
}

// A tree of fixed shape instead of atomic additions, so that every run has the same bits.
// Each block adds up the parts for one warp's width of columns; its warps divide the parts.
__global__ void __launch_bounds__(kMostThreads)
    add_parts(const float* parts, int64_t count, int64_t width, bool add, float* weight_gradient) {
  constexpr int kWarps = kMostThreads / kWarp;
  __shared__ float sums[kWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (column < width) {
    for (int64_t part = warp; part < count; part += kWarps) sum += parts[part * width + column];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= width) return;
  sum = add ? weight_gradient[column] : 0.0F;
  for (int k = 0; k < kWarps; ++k) sum += sums[k][lane];
  weight_gradient[column] = sum;
}

}  // namespace

cudaError_t launch_rms_norm(const RmsNorm& norm, cudaStream_t stream) {
  if (norm.rows == 0) return cudaSuccess;
  const bool packs = are_packs<4>(norm.width, norm.x, norm.branch, norm.sum, norm.weight, norm.y);
  const int n = packs ? 4 : 1;
  const LaunchShape shape{.blocks = static_cast<unsigned>(norm.rows),
                          .threads = threads_for(norm.width / n)};
  return launch(packs ? normalise_rows<4> : normalise_rows<1>, shape, stream, norm);
}

int64_t rms_norm_parts(int64_t rows) {
  // Depends on the rows only, not on the GPU, so that every GPU computes the same bits. 512 blocks
  // are about four for each multiprocessor of the largest GPU, and cheap to add up.
  return std::min<int64_t>(rows, 512);
}

// The first kernel leaves a part of the weight's gradient for each block; the second adds the
// parts.
cudaError_t launch_rms_norm_backward(const RmsNormBackward& norm, float* weight_gradient, bool add,
                                     float* parts, cudaStream_t stream) {
  const int64_t width = norm.width, count = rms_norm_parts(norm.rows);
  if (count > 0) {
    const int n =
        are_packs<4>(width, norm.y_gradient, norm.x, norm.weight, norm.x_gradient, norm.copy, parts)
            ? 4
            : 1;
    const int64_t packs = width / n;
    const LaunchShape shape{.blocks = static_cast<unsigned>(count), .threads = threads_for(packs)};
    // The widths of all presets are multiples of four, and at most two packs a thread. Registers
    // would not hold many more.
    const auto kernel = n == 1                      ? differentiate_rows<1>
                        : packs <= kMostThreads     ? differentiate_kept_rows<4, 1>
                        : packs <= 2 * kMostThreads ? differentiate_kept_rows<4, 2>
                                                    : differentiate_rows<4>;
    const auto error = launch(kernel, shape, stream, norm, parts);
    if (error != cudaSuccess) return error;
  }
  const auto blocks = static_cast<unsigned>((width + kWarp - 1) / kWarp);
  return launch(add_parts, {.blocks = blocks, .threads = kMostThreads}, stream, parts, count, width,
                add, weight_gradient);
}

}  // namespace farstep
