// Codecs that round every value separately to 16 bits, to nearest, ties to even.
//
// A finite value beyond the range of the short format becomes its largest value. NaN becomes a
// quiet NaN; infinities stay. Stateless; thread-safe.
#pragma once

#include "outer_optimizer/codec/codec.h"

namespace farstep::outer_optimizer {

struct Fp16Format;
struct Bf16Format;

template <typename Format>
class FloatCodec : public Codec {
 public:
  std::string_view name() const override;
  int64_t block_values() const override { return 1; }
  bool is_lossy() const override { return true; }
  float largest_value() const override;
  int64_t encoded_bytes(int64_t n) const override { return 2 * n; }
  void encode(std::span<const float> values, std::span<std::byte> bytes) const override;
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;
};

// IEEE binary16. Error at most |x| / 2^11 for |x| from 2^-14 to 65504, and 2^-25 below. Larger
// values become 65504.
using Fp16Codec = FloatCodec<Fp16Format>;

// The upper half of a binary32. Error at most |x| / 2^8 for |x| >= 2^-126, and 2^-134 below.
using Bf16Codec = FloatCodec<Bf16Format>;

}  // namespace farstep::outer_optimizer
