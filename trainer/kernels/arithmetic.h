// The arithmetic of kernels on single values, shared by processors and GPUs.
//
// For the sources of kernels only. Pure functions of fp32. A GPU uses its own exponential, which is
// a little less exact.
#pragma once

#include <cmath>
#include <cstdint>

#include "trainer/base/processor/host_device.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/numbers/vector_code.h"

namespace farstep {

FARSTEP_HOST_DEVICE inline float exponential(float x) {
#ifdef __CUDA_ARCH__
  return __expf(x);
#else
  return vector_exp(x);
#endif
}

// Returns 1 / rms of `width` values; `squares` is the sum of their squares.
FARSTEP_HOST_DEVICE inline float inverse_rms_of(float squares, int64_t width, float epsilon) {
  return 1.0F / std::sqrt(squares / static_cast<float>(width) + epsilon);
}

// Returns the factor of x that RMSNorm's backward subtracts from the gradient in x. `product` is
// the sum of y's gradient * weight * x.
FARSTEP_HOST_DEVICE inline float rms_norm_loss(float product, float inverse_rms, int64_t width) {
  return product * inverse_rms * inverse_rms * inverse_rms / static_cast<float>(width);
}

FARSTEP_HOST_DEVICE inline float sigmoid(float x) {
#ifdef __CUDA_ARCH__
  return 1.0F / (1.0F + exponential(-x));
#else
  return vector_sigmoid(x);
#endif
}

FARSTEP_HOST_DEVICE inline float swiglu_value(float gate, float up) {
  return gate * sigmoid(gate) * up;
}

struct SwigluGradient {
  float out;       // the value, recomputed
  float gate, up;  // the gradients
};

FARSTEP_HOST_DEVICE inline SwigluGradient swiglu_gradient(float out_gradient, float gate,
                                                          float up) {
  const float share = sigmoid(gate);
  const float silu = gate * share;
  return {silu * up, out_gradient * up * (share + silu * (1.0F - share)), out_gradient * silu};
}

struct RotatedPair {
  float first, second;
};

// Rotates a pair; backward passes the negative sine.
FARSTEP_HOST_DEVICE inline RotatedPair rotated_pair(float first, float second, float cosine,
                                                    float sine) {
  return {first * cosine - second * sine, second * cosine + first * sine};
}

// The quantities that all values of an AdamW step share.
struct AdamWRates {
  float rate, inverse_root;

  FARSTEP_HOST_DEVICE explicit AdamWRates(const AdamWStep& step)
      : rate(step.learning_rate / step.correction1),
        inverse_root(1.0F / std::sqrt(step.correction2)) {}
};

// Updates one value and returns it.
FARSTEP_HOST_DEVICE inline float adamw_update(const AdamWStep& step, const AdamWRates& rates,
                                              float gradient, float& value, float& first,
                                              float& second) {
  const float scaled = gradient * step.gradient_factor;
  first += (1.0F - step.beta1) * (scaled - first);
  second = step.beta2 * second + (1.0F - step.beta2) * scaled * scaled;
  const float denominator = std::sqrt(second) * rates.inverse_root + step.epsilon;
  value -= step.learning_rate * step.weight_decay * value + rates.rate * first / denominator;
  return value;
}

}  // namespace farstep
