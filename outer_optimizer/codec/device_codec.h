// Codecs on a GPU: the same bytes as the CPU's codecs, encoded and decoded in the GPU's memory.
//
// Only in builds with a CUDA toolkit. Methods launch work on a stream of the current GPU and
// return. Pointers are to the GPU's memory, which must stay valid until the stream has done the
// work. Values are aligned as floats; bytes need no alignment. Encoded bytes and decoded values
// have the bits of the CPU's codec, except that a NaN may decode to another NaN. No other memory is
// needed. A refused launch throws InternalError. Stateless and thread-safe.
//
// top_k has no such codec, because it selects the largest values of a block instead of passing over
// them once. fp32 needs none: its bytes are the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "outer_optimizer/codec/codec.h"
#include "trainer/cuda/cuda_check.h"

namespace farstep::outer_optimizer {

class DeviceCodec {
 public:
  virtual ~DeviceCodec() = default;
  // Encodes n values into the same bytes as the CPU's codec.
  virtual void encode(const float* values, int64_t n, std::byte* bytes,
                      cudaStream_t stream) const = 0;
  // Does the same, and sets residual_out[k] = values[k] - decoded[k]; `residual_out` may be
  // `values`.
  virtual void encode_with_feedback(const float* values, int64_t n, std::byte* bytes,
                                    float* residual_out, cudaStream_t stream) const = 0;
  // Decodes n values from `bytes`.
  virtual void decode(const std::byte* bytes, int64_t n, float* values,
                      cudaStream_t stream) const = 0;
  // Computes sum[k] += coefficient * decoded[k], with one multiplication and one addition.
  virtual void add_decoded(const std::byte* bytes, int64_t n, float coefficient, float* sum,
                           cudaStream_t stream) const = 0;
};

// Returns the GPU's codec for the bytes of `codec`. Throws ConfigError naming sync.codec.kind if
// there is none.
std::unique_ptr<DeviceCodec> make_device_codec(const Codec& codec);

}  // namespace farstep::outer_optimizer
