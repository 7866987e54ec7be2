#include "trainer/kernels/gpu/rms_norm.h"

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

// A block a row, which the second look finds in the cache.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    normalise_rows(const float* x, const float* weight, int64_t width, float epsilon, BF16* y,
                   float* inverse_rms, float* copy) {
  const int64_t packs = width / n, first = own_row() * packs;
  float squares = 0;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    const auto own = load<n>(x, first + pack);
    for (int i = 0; i < n; ++i) squares += own[i] * own[i];
  }
  const float inverse = inverse_rms_of(sum_over_block(squares), width, epsilon);
  if (threadIdx.x == 0) inverse_rms[own_row()] = inverse;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    const auto own = load<n>(x, first + pack);
    const auto weights = load<n>(weight, pack);
    Pack<BF16, n> normal;
    for (int i = 0; i < n; ++i) normal[i] = rounded<BF16>(own[i] * inverse * weights[i]);
    store<n>(y, first + pack, normal);
    if (copy != nullptr) store<n>(copy, first + pack, own);
  }
}

// What a block may ask for without being asked whether the GPU has it: 48 KiB, of which sums over
// the block take a little.
constexpr std::size_t kSharedBytes = 47 << 10;

// A block goes over every gridDim.x-th row, and leaves their part of the weight's gradient in a row
// of `parts`; in the meantime it is in shared memory where it fits. A thread alone sees a column.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    differentiate_rows(RmsNormBackward norm, float* x_gradient, BF16* copy, float* parts,
                       bool in_shared) {
  const int64_t packs = norm.width / n;
  float* const part = parts + blockIdx.x * norm.width;
  float* const sums = in_shared ? static_cast<float*>(shared_memory()) : part;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    store<n>(sums, pack, Pack<float, n>{});
  }
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    const int64_t first = row * packs;
    float product = 0;
    for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
      const auto dy = load<n>(norm.y_gradient, first + pack);
      const auto x = load<n>(norm.x, first + pack);
      const auto weights = load<n>(norm.weight, pack);
      for (int i = 0; i < n; ++i) product += dy[i] * weights[i] * x[i];
    }
    const float inverse = norm.inverse_rms[row];
    const float lost = rms_norm_loss(sum_over_block(product), inverse, norm.width);
    for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
      const auto dy = load<n>(norm.y_gradient, first + pack);
      const auto x = load<n>(norm.x, first + pack);
      const auto weights = load<n>(norm.weight, pack);
      auto sum = load<n>(sums, pack);
      auto dx = load<n>(x_gradient, first + pack);
      Pack<BF16, n> rounded_dx;
      for (int i = 0; i < n; ++i) {
        sum[i] += dy[i] * x[i] * inverse;
        dx[i] += dy[i] * weights[i] * inverse - x[i] * lost;
        rounded_dx[i] = rounded<BF16>(dx[i]);
      }
      store<n>(sums, pack, sum);
      store<n>(x_gradient, first + pack, dx);
      store<n>(copy, first + pack, rounded_dx);
    }
  }
  if (!in_shared) return;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    store<n>(part, pack, load<n>(sums, pack));
  }
}

// A warp's worth of columns a block; its warps share out the parts.
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

cudaError_t launch_rms_norm(const float* x, const float* weight, int64_t rows, int64_t width,
                            float epsilon, BF16* y, float* inverse_rms, float* copy,
                            cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int n = are_packs<4>(width, x, weight, y, copy) ? 4 : 1;
  const LaunchShape shape{.blocks = static_cast<unsigned>(rows), .threads = threads_for(width / n)};
  return launch(n == 4 ? normalise_rows<4> : normalise_rows<1>, shape, stream, x, weight, width,
                epsilon, y, inverse_rms, copy);
}

int64_t rms_norm_parts(int64_t rows) {
  // The same on every GPU, so that bits do not depend on its size: four blocks for each
  // multiprocessor of the largest, and so little that summing them up costs next to nothing.
  return std::min<int64_t>(rows, 512);
}

cudaError_t launch_rms_norm_backward(const RmsNormBackward& norm, float* x_gradient, BF16* copy,
                                     float* weight_gradient, bool add, float* parts,
                                     cudaStream_t stream) {
  const int64_t width = norm.width, count = rms_norm_parts(norm.rows);
  if (count > 0) {
    const int n =
        are_packs<4>(width, norm.y_gradient, norm.x, norm.weight, x_gradient, copy, parts) ? 4 : 1;
    const std::size_t bytes = static_cast<std::size_t>(width) * sizeof(float);
    const bool in_shared = bytes <= kSharedBytes;
    const LaunchShape shape{.blocks = static_cast<unsigned>(count),
                            .threads = threads_for(width / n),
                            .shared_bytes = in_shared ? bytes : 0};
    const auto error = launch(n == 4 ? differentiate_rows<4> : differentiate_rows<1>, shape, stream,
                              norm, x_gradient, copy, parts, in_shared);
    if (error != cudaSuccess) return error;
  }
  const auto blocks = static_cast<unsigned>((width + kWarp - 1) / kWarp);
  return launch(add_parts, {.blocks = blocks, .threads = kMostThreads}, stream, parts, count, width,
                add, weight_gradient);
}

}  // namespace farstep
