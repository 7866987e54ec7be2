// Clipping and AdamW on a GPU: the contracts of trainer/kernels/adamw.h over whole vectors in its
// memory.
//
// What differs from step to step is read from the GPU's memory, and the gradients' norm never
// leaves it: the host gives work without waiting, and a recorded step can be played again. Every
// launch gives the stream its work and returns what CUDA says of that. Sums have a fixed order, so
// equal calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "trainer/base/host_device.h"
#include "trainer/kernels/adamw.h"

namespace farstep {

// What the host asks of a step.
struct StepRequest {
  AdamWStep update;  // weight_decay is of what decays; gradient_factor is ignored
  double clip_norm = std::numeric_limits<double>::infinity();
};

// What became of it. A step whose loss or gradients are not finite is not taken, nor is any after
// it: values and moments stay as they are until the host clears the outcome.
struct StepOutcome {
  double gradient_norm = 0;
  double loss = 0;
  float gradient_factor = 0;
  int16_t taken = 0, refused = 0;  // one of them is 1, and both are 0 in a cleared outcome
};

// The outcome for gradients whose squares add up to `squares`; `refused`: the step before was not
// taken.
FARSTEP_HOST_DEVICE inline StepOutcome step_outcome(double squares, double clip_norm, double loss,
                                                    bool refused) {
  const double norm = std::sqrt(squares);
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

// What a step's outcome depends on.
struct StepFigures {
  const float* gradients = nullptr;
  int64_t size = 0;
  const float* losses = nullptr;  // which add up to the step's
  int64_t num_losses = 0;
};

// Doubles of room that the norm of so many gradients needs.
int64_t norm_parts(int64_t size);

// Replaces `outcome`, of the step before, by what step_outcome has for the figures; all in the
// GPU's memory, as is parts (norm_parts(size)).
[[nodiscard]] cudaError_t launch_step_outcome(const StepFigures& figures,
                                              const StepRequest* request, double* parts,
                                              StepOutcome* outcome, cudaStream_t stream);

// A part of a stretch, which one block of threads updates.
struct AdamWChunk {
  int64_t begin = 0;
  int32_t size = 0;
  int32_t decays = 0;
};

// The stretches in chunks of at most kChunkValues; all but a stretch's first and last are whole,
// and all but its first begin at a multiple of that.
constexpr int64_t kChunkValues = 4096;
std::vector<AdamWChunk> adamw_chunks(std::span<const DecayStretch> stretches);

struct AdamWVectors {
  const float* gradients = nullptr;
  float *values = nullptr, *first_moments = nullptr, *second_moments = nullptr;
  BF16* copy = nullptr;  // of the values, rounded; may be null
};

// One update of the values of `chunks` (count), as `request` and `outcome` say; all in the GPU's
// memory.
[[nodiscard]] cudaError_t launch_adamw(const StepRequest* request, const StepOutcome* outcome,
                                       const AdamWChunk* chunks, int64_t count,
                                       const AdamWVectors& vectors, cudaStream_t stream);

}  // namespace farstep
