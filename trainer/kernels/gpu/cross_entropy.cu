#include "trainer/kernels/gpu/cross_entropy.h"

#include <cfloat>

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

constexpr int kRowThreads = 512;

// Some logits: their largest, and the sum of their exponentials relative to it.
struct Exponentials {
  float largest = -FLT_MAX, sum = 0;

  template <int n>
  __device__ void add(const Pack<float, n>& logits) {
    float most = largest;
    for (int i = 0; i < n; ++i) most = fmaxf(most, logits[i]);
    sum *= exponential(largest - most);
    for (int i = 0; i < n; ++i) sum += exponential(logits[i] - most);
    largest = most;
  }
};

// A block a row: one look finds largest and sum together, the second writes the gradient.
template <int n>
__global__ void __launch_bounds__(kRowThreads)
    cross_entropy_rows(const float* logits, const int64_t* targets, int64_t vocabulary, float scale,
                       float* losses, BF16* logit_gradient) {
  const int64_t packs = vocabulary / n, first = own_row() * packs;
  Exponentials own;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    own.add(load<n>(logits, first + pack));
  }
  const float largest =
      combine_over_block(own.largest, [](float a, float b) { return fmaxf(a, b); });
  const float sum = sum_over_block(own.sum * exponential(own.largest - largest));
  const int64_t target = targets[own_row()];
  if (threadIdx.x == 0) {
    losses[own_row()] = logf(sum) - (logits[own_row() * vocabulary + target] - largest);
  }
  if (logit_gradient == nullptr) return;
  const float factor = scale / sum;
  for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
    const auto logit = load<n>(logits, first + pack);
    Pack<BF16, n> gradient;
    for (int i = 0; i < n; ++i) {
      const float share = exponential(logit[i] - largest) * factor;
      gradient[i] = rounded<BF16>(pack * n + i == target ? share - scale : share);
    }
    store<n>(logit_gradient, first + pack, gradient);
  }
}

}  // namespace

cudaError_t launch_cross_entropy(const float* logits, const int64_t* targets, int64_t rows,
                                 int64_t vocabulary, float scale, float* losses,
                                 BF16* logit_gradient, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int n = are_packs<4>(vocabulary, logits, logit_gradient) ? 4 : 1;
  const LaunchShape shape{.blocks = static_cast<unsigned>(rows),
                          .threads = threads_for(vocabulary / n, kRowThreads)};
  return launch(n == 4 ? cross_entropy_rows<4> : cross_entropy_rows<1>, shape, stream, logits,
                targets, vocabulary, scale, losses, logit_gradient);
}

}  // namespace farstep
