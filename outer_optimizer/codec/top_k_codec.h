// A codec that sends the values of largest magnitude only, and where they stand.
//
// Of a block of n values it keeps k = max(1, top_fraction * n rounded half up), those of largest
// magnitude, of equal ones those that come first; the others decode to +0. Bytes of a block: the k
// values in the order they stand (IEEE binary32), then their k offsets in the block (uint16),
// little endian. Blocks follow one another without gaps; the last may be shorter.
//
// Error: |x - decoded|^2 <= (1 - k / n) |x|^2 for every block, and kept values are exact. A NaN
// counts as larger than infinity, infinity as larger than any number, so a block that has one keeps
// one. No state; all methods may be called concurrently.
#pragma once

#include "outer_optimizer/codec/codec.h"

namespace farstep {

class TopKCodec : public Codec {
 public:
  static constexpr int64_t kDefaultBlock = 4096;
  // `top_fraction` is above 0 and at most 1. Throws ConfigError unless `block` is from 1 to 65536.
  explicit TopKCodec(double top_fraction, int64_t block = kDefaultBlock);
  std::string_view name() const override { return "top_k"; }
  int64_t block_values() const override { return block_; }
  bool is_lossy() const override { return true; }
  int64_t encoded_bytes(int64_t n) const override;
  void encode(std::span<const float> values, std::span<std::byte> bytes) const override;
  // Throws PeerError if an offset is outside of its block.
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;

 private:
  // Values kept of a block of n > 0.
  int64_t kept(int64_t n) const;

  double top_fraction_;
  int64_t block_;
};

}  // namespace farstep
