#include "trainer/kernels/gpu/adamw.h"

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

// Squares are added in fp64, one part for each block; settle_step() adds the parts.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    add_squares(const float* values, int64_t size, double* parts) {
  double sum = 0;
  const auto stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t pack = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; pack < size / n;
       pack += stride) {
    const auto own = load<n>(values, pack);
    for (int i = 0; i < n; ++i) sum += static_cast<double>(own[i]) * own[i];
  }
  // The values that fill no pack; there are at most n - 1.
  if (blockIdx.x == 0 && threadIdx.x < size % n) {
    const double last = values[size - 1 - threadIdx.x];
    sum += last * last;
  }
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kMostThreads)
    settle_norm(const double* parts, int64_t count, double* norm) {
  double sum = 0;
  for (int64_t part = threadIdx.x; part < count; part += kMostThreads) sum += parts[part];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) *norm = std::sqrt(sum);
}

// The step's outcome is decided on the GPU, so that the host need not wait for the norm.
__global__ void __launch_bounds__(kMostThreads)
    settle_step(const double* parts, int64_t count, StepFigures figures, const StepRequest* request,
                StepOutcome* outcome) {
  // One block adds all parts in a fixed order, so the bits do not depend on which block ends first.
  double sum = 0, loss = 0;
  for (int64_t part = threadIdx.x; part < count; part += kMostThreads) sum += parts[part];
  for (int64_t i = threadIdx.x; i < figures.num_losses; i += kMostThreads) {
    loss += figures.losses[i];
  }
  sum = sum_over_block(sum);
  loss = sum_over_block(loss);
  if (threadIdx.x == 0) {
    *outcome = step_outcome(sum, request->clip_norm, loss, outcome->refused != 0);
  }
}

// Packs of four values use the full width of memory accesses.
template <int n>
__device__ void update_chunk(const AdamWStep& step, const AdamWChunk& chunk,
                             const AdamWVectors& vectors) {
  const AdamWRates rates(step);
  const int64_t first = chunk.begin / n;
#pragma unroll 4
  for (int64_t pack = threadIdx.x; pack < chunk.size / n; pack += kMostThreads) {
    const auto gradients = load<n>(vectors.gradients, first + pack);
    auto values = load<n>(vectors.values, first + pack);
    auto first_moments = load<n>(vectors.first_moments, first + pack);
    auto second_moments = load<n>(vectors.second_moments, first + pack);
    Pack<BF16, n> copy;
    for (int i = 0; i < n; ++i) {
      copy[i] = rounded<BF16>(
          adamw_update(step, rates, gradients[i], values[i], first_moments[i], second_moments[i]));
    }
    store<n>(vectors.values, first + pack, values);
    store<n>(vectors.first_moments, first + pack, first_moments);
    store<n>(vectors.second_moments, first + pack, second_moments);
    if (vectors.copy != nullptr) store<n>(vectors.copy, first + pack, copy);
  }
}

// Each block of threads updates one chunk.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    update_chunks(const StepRequest* request, const StepOutcome* outcome, const AdamWChunk* chunks,
                  AdamWVectors vectors) {
  // A step that is not finite changes nothing. The host hears of it later.
  if (outcome->taken == 0) return;
  const AdamWChunk chunk = chunks[blockIdx.x];
  AdamWStep step = request->update;
  step.gradient_factor = outcome->gradient_factor;
  if (chunk.decays == 0) step.weight_decay = 0;
  if (chunk.begin % n == 0 && chunk.size % n == 0) {
    update_chunk<n>(step, chunk, vectors);
  } else {
    update_chunk<1>(step, chunk, vectors);
  }
}

}  // namespace

int64_t norm_parts(int64_t size) {
  // Depends on the size only, not on the GPU, so that every GPU computes the same bits. A part has
  // a pack for each thread. More than 1024 parts would make the one block that adds them slow.
  constexpr int64_t kValuesOfPart = 4 * kMostThreads, kMostParts = 1024;
  return std::clamp<int64_t>(size / kValuesOfPart, 1, kMostParts);
}

namespace {

cudaError_t launch_squares(const float* gradients, int64_t size, double* parts,
                           cudaStream_t stream) {
  return launch(are_packs<4>(0, gradients) ? add_squares<4> : add_squares<1>,
                {.blocks = static_cast<unsigned>(norm_parts(size)), .threads = kMostThreads},
                stream, gradients, size, parts);
}

}  // namespace

cudaError_t launch_norm(const float* gradients, int64_t size, double* parts, double* norm,
                        cudaStream_t stream) {
  const auto error = launch_squares(gradients, size, parts, stream);
  if (error != cudaSuccess) return error;
  return launch(settle_norm, {.blocks = 1, .threads = kMostThreads}, stream, parts,
                norm_parts(size), norm);
}

cudaError_t launch_step_outcome(const StepFigures& figures, const StepRequest* request,
                                double* parts, StepOutcome* outcome, cudaStream_t stream) {
  const auto error = launch_squares(figures.gradients, figures.size, parts, stream);
  if (error != cudaSuccess) return error;
  return launch(settle_step, {.blocks = 1, .threads = kMostThreads}, stream, parts,
                norm_parts(figures.size), figures, request, outcome);
}

std::vector<AdamWChunk> adamw_chunks(std::span<const DecayStretch> stretches) {
  std::vector<AdamWChunk> chunks;
  for (const auto& stretch : stretches) {
    for (int64_t begin = stretch.begin; begin < stretch.end;) {
      // Chunks end at multiples of kChunkValues, so that all but the first of a stretch begin at a
      // whole pack.
      const int64_t end = std::min(stretch.end, (begin / kChunkValues + 1) * kChunkValues);
      chunks.push_back({begin, static_cast<int32_t>(end - begin), stretch.decays ? 1 : 0});
      begin = end;
    }
  }
  return chunks;
}

cudaError_t launch_adamw(const StepRequest* request, const StepOutcome* outcome,
                         const AdamWChunk* chunks, int64_t count, const AdamWVectors& vectors,
                         cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const bool packs = are_packs<4>(0, vectors.gradients, vectors.values, vectors.first_moments,
                                  vectors.second_moments, vectors.copy);
  return launch(packs ? update_chunks<4> : update_chunks<1>,
                {.blocks = static_cast<unsigned>(count), .threads = kMostThreads}, stream, request,
                outcome, chunks, vectors);
}

}  // namespace farstep
