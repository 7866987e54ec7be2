// What kernels do to single values, for processors and GPUs alike.
//
// For the sources of kernels only. Pure functions of fp32; a GPU takes an exponential of its own,
// which is a little less exact.
#pragma once

#include <cmath>
#include <cstdint>

#include "trainer/base/host_device.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/vector_code.h"

namespace farstep {

FARSTEP_HOST_DEVICE inline float exponential(float x) {
#ifdef __CUDA_ARCH__
  return __expf(x);
#else
  return vector_exp(x);
#endif
}

// 1 / rms of `width` values whose squares add up to `squares`.
FARSTEP_HOST_DEVICE inline float inverse_rms_of(float squares, int64_t width, float epsilon) {
  return 1.0F / std::sqrt(squares / static_cast<float>(width) + epsilon);
}

// How much of x the gradient in x loses, where y's gradient * weight * x adds up to `product`.
FARSTEP_HOST_DEVICE inline float rms_norm_loss(float product, float inverse_rms, int64_t width) {
  return product * inverse_rms * inverse_rms * inverse_rms / static_cast<float>(width);
}

FARSTEP_HOST_DEVICE inline float sigmoid(float x) {
  return 1.0F / (1.0F + exponential(-x));
}

FARSTEP_HOST_DEVICE inline float swiglu_value(float gate, float up) {
  return gate * sigmoid(gate) * up;
}

struct SwigluGradient {
  float out;       // the value once more
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

// Backward takes the negative sine.
FARSTEP_HOST_DEVICE inline RotatedPair rotated_pair(float first, float second, float cosine,
                                                    float sine) {
  return {first * cosine - second * sine, second * cosine + first * sine};
}

// What all values of an AdamW step share.
struct AdamWRates {
  float rate, inverse_root;

  FARSTEP_HOST_DEVICE explicit AdamWRates(const AdamWStep& step)
      : rate(step.learning_rate / step.correction1),
        inverse_root(1.0F / std::sqrt(step.correction2)) {}
};

// The update of one value, which it returns.
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
