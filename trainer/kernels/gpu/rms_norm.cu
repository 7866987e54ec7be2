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

// A thread's part of a row of the arrays of backward: kKept packs.
template <int n, int kKept>
struct RowPart {
  Pack<BF16, n> dy[kKept];
  Pack<float, n> x[kKept], dx[kKept];

  __device__ RowPart(const RmsNormBackward& norm, int64_t row, int64_t packs) {
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = threadIdx.x + int64_t{k} * blockDim.x;
      if (pack >= packs) continue;
      dy[k] = load<n>(norm.y_gradient, row * packs + pack);
      x[k] = load<n>(norm.x, row * packs + pack);
      dx[k] = load<n>(norm.x_gradient, row * packs + pack);
    }
  }
};

// Each block visits every gridDim.x-th row, and writes their part of the weight's gradient to a row
// of `parts`. Each column belongs to one thread, which keeps its part, its weights and its share of
// the row in registers. The next row is read before this one's sum, for which all threads wait: so
// memory is never idle.
template <int n, int kKept>
__global__ void __launch_bounds__(kMostThreads)
    differentiate_kept_rows(RmsNormBackward norm, float* parts) {
  const int64_t packs = norm.width / n;
  Pack<float, n> weights[kKept]{}, sums[kKept]{};
  for (int k = 0; k < kKept; ++k) {
    const int64_t pack = threadIdx.x + int64_t{k} * blockDim.x;
    if (pack < packs) weights[k] = load<n>(norm.weight, pack);
  }
  uint32_t largest = 0;
  int64_t row = blockIdx.x;
  RowPart<n, kKept> next(norm, row, packs);
  for (; row < norm.rows; row += gridDim.x) {
    auto own = next;
    if (row + gridDim.x < norm.rows) next = RowPart<n, kKept>(norm, row + gridDim.x, packs);
    float product = 0;
    for (int k = 0; k < kKept; ++k) {
      if (threadIdx.x + int64_t{k} * blockDim.x >= packs) continue;
      for (int i = 0; i < n; ++i) product += to_float(own.dy[k][i]) * weights[k][i] * own.x[k][i];
    }
    const float inverse = norm.inverse_rms[row];
    const float lost = rms_norm_loss(sum_over_block(product), inverse, norm.width);
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = threadIdx.x + int64_t{k} * blockDim.x;
      if (pack >= packs) continue;
      Pack<BF16, n> rounded_dx;
      for (int i = 0; i < n; ++i) {
        const float gradient = to_float(own.dy[k][i]), x = own.x[k][i];
        sums[k][i] += gradient * x * inverse;
        own.dx[k][i] += gradient * weights[k][i] * inverse - x * lost;
        rounded_dx[i] = rounded<BF16>(own.dx[k][i]);
        largest = larger_of(largest, magnitude_bits(rounded_dx[i]));
      }
      store<n>(norm.x_gradient, row * packs + pack, own.dx[k]);
      store<n>(norm.copy, row * packs + pack, rounded_dx);
    }
  }
  if (norm.largest != nullptr) raise_to_largest(largest, norm.largest);
  for (int k = 0; k < kKept; ++k) {
    const int64_t pack = threadIdx.x + int64_t{k} * blockDim.x;
    if (pack < packs) store<n>(parts, blockIdx.x * packs + pack, sums[k]);
  }
}

// The same for rows of any width: each row is read twice, the second time from the cache.
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
      const auto dy = load<n>(norm.y_gradient, first + pack);
      const auto x = load<n>(norm.x, first + pack);
      const auto weights = load<n>(norm.weight, pack);
      for (int i = 0; i < n; ++i) product += to_float(dy[i]) * weights[i] * x[i];
    }
    const float inverse = norm.inverse_rms[row];
    const float lost = rms_norm_loss(sum_over_block(product), inverse, norm.width);
    for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
      const auto dy = load<n>(norm.y_gradient, first + pack);
      const auto x = load<n>(norm.x, first + pack);
      const auto weights = load<n>(norm.weight, pack);
      auto sum = load<n>(sums, pack);
      auto dx = load<n>(norm.x_gradient, first + pack);
      Pack<BF16, n> rounded_dx;
      for (int i = 0; i < n; ++i) {
        const float gradient = to_float(dy[i]);
        sum[i] += gradient * x[i] * inverse;
        dx[i] += gradient * weights[i] * inverse - x[i] * lost;
        rounded_dx[i] = rounded<BF16>(dx[i]);
        largest = larger_of(largest, magnitude_bits(rounded_dx[i]));
      }
      store<n>(sums, pack, sum);
      store<n>(norm.x_gradient, first + pack, dx);
      store<n>(norm.copy, first + pack, rounded_dx);
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
    const auto kept = [&]<int k>(std::integral_constant<int, k>) {
      return n == 4 ? differentiate_kept_rows<4, k> : differentiate_kept_rows<1, k>;
    };
    // More packs would not fit into a thread's registers.
    const auto kernel = packs <= kMostThreads       ? kept(std::integral_constant<int, 1>{})
                        : packs <= 2 * kMostThreads ? kept(std::integral_constant<int, 2>{})
                        : n == 4                    ? differentiate_rows<4>
                                                    : differentiate_rows<1>;
    const auto error = launch(kernel, shape, stream, norm, parts);
    if (error != cudaSuccess) return error;
  }
  const auto blocks = static_cast<unsigned>((width + kWarp - 1) / kWarp);
  return launch(add_parts, {.blocks = blocks, .threads = kMostThreads}, stream, parts, count, width,
                add, weight_gradient);
}

}  // namespace farstep
