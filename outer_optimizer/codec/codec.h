// Codecs turn fp32 values into the bytes that travel, and back.
//
// Encoding is a pure function of the values, and decoding of the bytes, with the same bits on every
// processor. So all sites that decode the same bytes hold the same values. Values are encoded in
// blocks; a block's bytes depend on its values only. Finite values decode to finite ones. A value
// that is not finite makes at least one value of its block decode to NaN or infinity. Numbers in
// bytes are little endian. Codecs are stateless and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace farstep::outer_optimizer {

// The largest block of any codec, so that offsets in a block fit 16 bits.
inline constexpr int64_t kLargestBlock = 65536;

class Codec {
 public:
  virtual ~Codec() = default;
  // Returns its name in configs and reports.
  virtual std::string_view name() const = 0;
  // Returns the values of a block; the last block of an encoding may be shorter. Pieces cut at
  // multiples of it and encoded separately give the same bytes as one encoding.
  virtual int64_t block_values() const = 0;
  // Whether decoded values may differ from the encoded ones, so that error feedback is useful.
  virtual bool is_lossy() const = 0;
  // Returns the largest magnitude that it can send. A larger finite value travels as that one.
  virtual float largest_value() const { return std::numeric_limits<float>::max(); }
  // Returns the bytes of n encoded values.
  virtual int64_t encoded_bytes(int64_t n) const = 0;
  // Encodes all of `values` into `bytes`, which has encoded_bytes(values.size()) bytes.
  virtual void encode(std::span<const float> values, std::span<std::byte> bytes) const = 0;
  // Decodes values.size() values from `bytes`.
  virtual void decode(std::span<const std::byte> bytes, std::span<float> values) const = 0;
  // Computes sum[k] += coefficient * decoded[k], with the bits of decode(), one multiplication and
  // one addition. Needs memory for a few blocks only.
  virtual void add_decoded(std::span<const std::byte> bytes, float coefficient,
                           std::span<float> sum) const;

  // Throws InternalError if `bytes` is not the encoded size of n values.
  void check_size(std::size_t bytes, std::size_t n) const;
};

// Returns how many of the values are larger than the codec can send.
int64_t count_saturated(const Codec& codec, std::span<const float> values);

// Returns the values of a piece of whole blocks that fits a core's cache when decoded.
int64_t piece_values(const Codec& codec);

// Sends the values' own bits, without error.
class Fp32Codec : public Codec {
 public:
  std::string_view name() const override { return "fp32"; }
  int64_t block_values() const override { return 1; }
  bool is_lossy() const override { return false; }
  int64_t encoded_bytes(int64_t n) const override { return n * int64_t{sizeof(float)}; }
  void encode(std::span<const float> values, std::span<std::byte> bytes) const override;
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;
};

}  // namespace farstep::outer_optimizer
