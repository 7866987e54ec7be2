// Codecs that give each block of values one scale and each value a code of 8, 4 or 2 bits.
//
// Bytes of a block of n values: the scale, then the codes in ceil(n * bits / 8) bytes. The scale
// has 4 bytes (IEEE binary32, little endian) in int8, and only the upper 2 (bf16, rounded half to
// even) in int4 and int2. A code is a signed integer in two's complement. The first value has the
// lowest bits of the first byte: in int4 value 0 is the low nibble and value 1 the high one. Unused
// bits are 0. Blocks follow one another without gaps; the last may be shorter.
//
// int8: scale = max|x| / 127, and code = x / scale rounded to nearest, ties to even. A value
// decodes to code * scale. int4: the same with max|x| / 7; rounding its scale moves no code out of
// range.
//
// int2: a value decodes to q * scale with q = 2 code + 1. q has the sign of x (+ for zeros), and
// |q| is 3 if |x| exceeds the rms of the block, else 1. scale = <x, q> / <q, q>.
//
// Error of every value: int8 at most 0.5001 max|x| / 127 of its block, int4 0.502 max|x| / 7. Error
// of an int2 block: |x - decoded|^2 <= (1 - 1 / (10 n)) |x|^2, so error feedback converges.
//
// A block whose scale would be below 2^-126 (1.2e-38) gets scale 0 and codes 0, and decodes to
// zeros: for int8 if max|x| < 1.5e-36, for int4 if max|x| < 8.3e-38. Scales are limited so that the
// largest code does not overflow. A block with a NaN or an infinity gets scale NaN and codes 0, and
// decodes to NaN. Stateless; thread-safe.
#pragma once

#include "outer_optimizer/codec/codec.h"

namespace farstep::outer_optimizer {

struct Int8Format;
struct Int4Format;
struct Int2Format;

template <typename Format>
class BlockCodec : public Codec {
 public:
  static const int64_t kDefaultBlock;
  // Throws ConfigError unless `block` is 1 to 65536 and its codes fill whole bytes.
  explicit BlockCodec(int64_t block = kDefaultBlock);
  std::string_view name() const override;
  int64_t block_values() const override { return block_; }
  bool is_lossy() const override { return true; }
  int64_t encoded_bytes(int64_t n) const override;
  void encode(std::span<const float> values, std::span<std::byte> bytes) const override;
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;

 private:
  int64_t block_;
};

using Int8Codec = BlockCodec<Int8Format>;  // blocks of 256 by default
using Int4Codec = BlockCodec<Int4Format>;  // blocks of 160 by default
using Int2Codec = BlockCodec<Int2Format>;  // blocks of 128 by default

}  // namespace farstep::outer_optimizer
