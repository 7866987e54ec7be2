// Codecs that shorten every value by itself to 16 bits, rounded to nearest, ties to even: two bytes
// a value.
//
// Finite values beyond the largest of the short format become that largest one. NaN stays NaN (a
// quiet one), infinity stays infinite. No state; all methods may be called concurrently.
#pragma once

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/codec/instruction_set.h"

namespace farstep {

struct Fp16Format;
struct Bf16Format;

template <typename Format>
class FloatCodec : public Codec {
 public:
  explicit FloatCodec(InstructionSet set = widest_instruction_set()) : set_(set) {}
  std::string_view name() const override;
  int64_t block_values() const override { return 1; }
  bool is_lossy() const override { return true; }
  int64_t encoded_bytes(int64_t n) const override { return 2 * n; }
  void encode(std::span<const float> values, std::span<std::byte> bytes) const override;
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;

 private:
  InstructionSet set_;
};

// IEEE binary16. Error at most |x| / 2^11 where |x| is from 2^-14 to 65504, and 2^-25 below; what
// is larger becomes 65504.
using Fp16Codec = FloatCodec<Fp16Format>;

// The upper half of a binary32. Error at most |x| / 2^8 where |x| >= 2^-126, and 2^-134 below.
using Bf16Codec = FloatCodec<Bf16Format>;

}  // namespace farstep
