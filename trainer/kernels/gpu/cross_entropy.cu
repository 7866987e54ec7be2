#include "trainer/kernels/gpu/cross_entropy.h"

#include <cfloat>

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

// The largest block of threads, so that most rows fit into its registers.
constexpr int kRowThreads = 1024;
// Packs of a row that a thread keeps in its registers, of which it has 64. With packs of four
// values that is 32768 logits of a row; with single values, which need more registers each, 8192.
constexpr int kKeptPacks = 8;

// The largest of some logits, and the sum of their exponentials relative to it.
struct Exponentials {
  float largest = -FLT_MAX, sum = 0;

  template <int n>
  __device__ void add(const Pack<float, n>& logits) {
    // Rescales the sum when a larger logit comes (the "online softmax" of Milakov and Gimelshein
    // 2018).
    float most = largest;
    for (int i = 0; i < n; ++i) most = fmaxf(most, logits[i]);
    sum *= exponential(largest - most);
    for (int i = 0; i < n; ++i) sum += exponential(logits[i] - most);
    largest = most;
  }
};

// One row. Packs have 32-bit numbers, to save registers.
template <int n>
struct Row {
  const float* logits;
  BF16* gradient;
  int target;
  float factor, scale;  // exponential * factor - (target ? scale : 0) is the gradient

  // Stores the gradient of a pack, from its exponentials relative to the row's largest logit.
  __device__ void store_gradient(const Pack<float, n>& exponentials, int pack) const {
    Pack<BF16, n> own;
    for (int i = 0; i < n; ++i) {
      const float share = exponentials[i] * factor;
      own[i] = rounded<BF16>(pack * n + i == target ? share - scale : share);
    }
    store<n>(gradient, pack, own);
  }
};

// Each block computes a row. Logits in registers are read from memory once. Logits beyond that are
// read twice: for their largest and sum, and for the gradient.
template <int n>
__global__ void __launch_bounds__(kRowThreads)
    cross_entropy_rows(const float* logits, const int64_t* targets, int vocabulary, float scale,
                       float* losses, BF16* logit_gradient) {
  const int64_t begin = own_row() * vocabulary;
  Row<n> row{.logits = logits + begin,
             .gradient = logit_gradient == nullptr ? nullptr : logit_gradient + begin,
             .target = static_cast<int>(targets[own_row()]),
             .factor = 0,
             .scale = scale};
  const int packs = vocabulary / n, threads = static_cast<int>(blockDim.x);
  const int own = static_cast<int>(threadIdx.x);

  Exponentials rest;
#pragma unroll 4
  for (int pack = own + kKeptPacks * threads; pack < packs; pack += threads) {
    rest.add(load<n>(row.logits, pack));
  }
  Pack<float, n> kept[kKeptPacks];
#pragma unroll
  for (int k = 0; k < kKeptPacks; ++k) {
    if (own + k * threads < packs) kept[k] = load<n>(row.logits, own + k * threads);
  }
  const float target_logit = row.logits[row.target];
  float largest = rest.largest;
#pragma unroll
  for (int k = 0; k < kKeptPacks; ++k) {
    if (own + k * threads >= packs) continue;
    for (int i = 0; i < n; ++i) largest = fmaxf(largest, kept[k][i]);
  }
  largest = combine_over_block(largest, [](float a, float b) { return fmaxf(a, b); });
  float sum = rest.sum * exponential(rest.largest - largest);
#pragma unroll
  for (int k = 0; k < kKeptPacks; ++k) {
    if (own + k * threads >= packs) continue;
    for (int i = 0; i < n; ++i) {
      kept[k][i] = exponential(kept[k][i] - largest);
      sum += kept[k][i];
    }
  }
  sum = sum_over_block(sum);
  if (own == 0) losses[own_row()] = logf(sum) - (target_logit - largest);
  // Validation needs the loss only.
  if (logit_gradient == nullptr) return;

  row.factor = scale / sum;
#pragma unroll
  for (int k = 0; k < kKeptPacks; ++k) {
    if (own + k * threads < packs) row.store_gradient(kept[k], own + k * threads);
  }
#pragma unroll 4
  for (int pack = own + kKeptPacks * threads; pack < packs; pack += threads) {
    auto logit = load<n>(row.logits, pack);
    for (int i = 0; i < n; ++i) logit[i] = exponential(logit[i] - largest);
    row.store_gradient(logit, pack);
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
                targets, static_cast<int>(vocabulary), scale, losses, logit_gradient);
}

}  // namespace farstep
