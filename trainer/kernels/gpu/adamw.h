// Clipping and AdamW on a GPU: trainer/kernels/adamw.h over whole vectors in its memory.
//
// The settings of a step and the gradients' norm stay in the GPU's memory. So the host launches
// without waiting, and a step recorded as a CUDA graph can run again. A launch returns CUDA's error
// code. Sums have a fixed order, so equal calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "trainer/base/processor/host_device.h"
#include "trainer/kernels/adamw.h"

namespace farstep {

// The settings of a step, written by the host.
struct StepRequest {
  AdamWStep update;  // weight_decay is for chunks that decay; gradient_factor is ignored
  double clip_norm = std::numeric_limits<double>::infinity();
};

// The result of a step. A step whose loss or gradients are not finite is refused, and so is every
// later one: values and moments stay unchanged until the host clears the outcome.
struct StepOutcome {
  double gradient_norm = 0;
  double loss = 0;
  float gradient_factor = 0;
  int16_t taken = 0, refused = 0;  // one of them is 1, and both are 0 in a cleared outcome
};

// Returns the outcome for gradients with the given sum of squares. `refused`: the step before was
// refused.
FARSTEP_HOST_DEVICE inline StepOutcome step_outcome(double squares, double clip_norm, double loss,
                                                    bool refused) {
  const double norm = std::sqrt(squares);
  // 1e-6 as in torch.nn.utils.clip_grad_norm_.
  const double factor = clip_norm / (norm + 1e-6);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool taken = !refused && norm < kInfinity && -kInfinity < loss && loss < kInfinity;
  StepOutcome outcome;
  outcome.gradient_norm = norm;
  outcome.loss = loss;
  outcome.gradient_factor = static_cast<float>(factor < 1 ? factor : 1);
  outcome.taken = taken ? 1 : 0;
  outcome.refused = taken ? 0 : 1;
  return outcome;
}

// The inputs of a step's outcome.
struct StepFigures {
  const float* gradients = nullptr;
  int64_t size = 0;
  const float* losses = nullptr;  // their sum is the step's loss
  int64_t num_losses = 0;
};

// Returns the number of doubles that the norm of `size` gradients needs as working memory.
int64_t norm_parts(int64_t size);

// Replaces `outcome`, that of the step before, by step_outcome() of the figures. All memory is the
// GPU's; parts has norm_parts(size) doubles.
[[nodiscard]] cudaError_t launch_step_outcome(const StepFigures& figures,
                                              const StepRequest* request, double* parts,
                                              StepOutcome* outcome, cudaStream_t stream);

// Sets `norm` to that of the gradients alone. Memory as above.
[[nodiscard]] cudaError_t launch_norm(const float* gradients, int64_t size, double* parts,
                                      double* norm, cudaStream_t stream);

// A part of a stretch; one block of threads updates it.
struct AdamWChunk {
  int64_t begin = 0;
  int32_t size = 0;
  int32_t decays = 0;
};

// Returns the stretches in chunks of at most kChunkValues. A chunk begins at a multiple of
// kChunkValues, except a stretch's first one.
constexpr int64_t kChunkValues = 4096;
std::vector<AdamWChunk> adamw_chunks(std::span<const DecayStretch> stretches);

struct AdamWVectors {
  const float* gradients = nullptr;
  float *values = nullptr, *first_moments = nullptr, *second_moments = nullptr;
  BF16* copy = nullptr;  // the new values, rounded; may be null
};

// Updates the values of `chunks` (count) once, with the settings in `request`, unless `outcome`
// refuses the step. All memory is the GPU's.
[[nodiscard]] cudaError_t launch_adamw(const StepRequest* request, const StepOutcome* outcome,
                                       const AdamWChunk* chunks, int64_t count,
                                       const AdamWVectors& vectors, cudaStream_t stream);

}  // namespace farstep
