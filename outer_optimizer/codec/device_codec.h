// Codecs on a GPU: the same bytes as the CPU's codecs, made and read where the values lie.
//
// Only built with a CUDA toolkit. Methods give the work to a stream of the current GPU and return;
// pointers are the GPU's, and what they point to must stay until the stream has done the work.
// Values are aligned as floats are; bytes need no alignment. Encoded bytes, and values decoded from
// them, have the bits that the CPU's codec gives; only which of the NaNs a NaN decodes to may
// differ. No memory is needed beside the arguments'. A refused launch throws InternalError. No
// state; all methods may be called concurrently.
//
// top_k has no such codec: choosing a block's largest values, ties in order, is a selection and not
// a pass over them. Neither has fp32, whose bytes are the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "outer_optimizer/codec/codec.h"
#include "trainer/cuda/cuda_check.h"

namespace farstep {

class DeviceCodec {
 public:
  virtual ~DeviceCodec() = default;
  // Encodes n values into the bytes that the CPU's codec has for them.
  virtual void encode(const float* values, int64_t n, std::byte* bytes,
                      cudaStream_t stream) const = 0;
  // The same, and sets residual_out[k] = values[k] - decoded[k]; `residual_out` may be `values`.
  virtual void encode_with_feedback(const float* values, int64_t n, std::byte* bytes,
                                    float* residual_out, cudaStream_t stream) const = 0;
  // Decodes n values from `bytes`.
  virtual void decode(const std::byte* bytes, int64_t n, float* values,
                      cudaStream_t stream) const = 0;
  // sum[k] += coefficient * decoded[k], with the bits of a multiplication and an addition.
  virtual void add_decoded(const std::byte* bytes, int64_t n, float coefficient, float* sum,
                           cudaStream_t stream) const = 0;
};

// The GPU's codec for the bytes of `codec`. Throws ConfigError that names sync.codec.kind if there
// is none.
std::unique_ptr<DeviceCodec> make_device_codec(const Codec& codec);

}  // namespace farstep
