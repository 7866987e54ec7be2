// A codec that sends only the values of largest magnitude, and their positions.
//
// Of a block of n values it keeps k = max(1, top_fraction * n rounded half up): those of largest
// magnitude, and of equal ones the first. The others decode to +0. Bytes of a block: the k values
// in order of position (IEEE binary32), then their k offsets in the block (uint16), little endian.
// Blocks follow one another without gaps; the last may be shorter.
//
// Error: |x - decoded|^2 <= (1 - k / n) |x|^2 for every block, and kept values are exact. NaN
// counts as larger than infinity, and infinity as larger than any number, so a block that has one
// keeps one. Stateless; thread-safe.
#pragma once

#include "outer_optimizer/codec/codec.h"

namespace farstep::outer_optimizer {

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
  // Throws PeerError if an offset is outside its block.
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;

 private:
  // Returns how many values of a block of n > 0 are kept.
  int64_t kept(int64_t n) const;

  double top_fraction_;
  int64_t block_;
};

}  // namespace farstep::outer_optimizer
