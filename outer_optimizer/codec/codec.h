// How fp32 values travel: a codec turns them into bytes and back.
//
// Encoding is a pure function of the values and decoding of the bytes, bit for bit the same on
// every processor, so all sites that decode the same bytes hold the same values. Values are encoded
// in blocks, and the bytes of a block depend on nothing outside it. Finite values decode to finite
// ones; a value that is not finite makes at least one value of its block decode to NaN or infinity.
// All numbers in bytes are little endian. Codecs have no state; all methods may be called
// concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace farstep {

// Most values of a block, whatever the codec: offsets in it fit 16 bits.
inline constexpr int64_t kLargestBlock = 65536;

class Codec {
 public:
  virtual ~Codec() = default;
  // Its name in configs and reports.
  virtual std::string_view name() const = 0;
  // Values of a block; the last one of an encoding may be shorter. Values cut at multiples of it
  // and encoded piece by piece give the bytes of all of them encoded at once.
  virtual int64_t block_values() const = 0;
  // Whether decoded values may differ from those encoded, so that error feedback has a use.
  virtual bool is_lossy() const = 0;
  // Bytes of n encoded values.
  virtual int64_t encoded_bytes(int64_t n) const = 0;
  // Encodes all of `values` into `bytes`, which has encoded_bytes(values.size()) bytes.
  virtual void encode(std::span<const float> values, std::span<std::byte> bytes) const = 0;
  // Decodes values.size() values from `bytes`.
  virtual void decode(std::span<const std::byte> bytes, std::span<float> values) const = 0;
  // sum[k] += coefficient * decoded[k], with the bits of decode(), a multiplication and an
  // addition; needs no more memory than a few blocks.
  virtual void add_decoded(std::span<const std::byte> bytes, float coefficient,
                           std::span<float> sum) const;

  // Throws InternalError if `bytes` is not the encoded size of n values.
  void check_size(std::size_t bytes, std::size_t n) const;
};

// Values of a piece of whole blocks that, decoded, stays in a core's cache.
int64_t piece_values(const Codec& codec);

// The values' own bits: no error.
class Fp32Codec : public Codec {
 public:
  std::string_view name() const override { return "fp32"; }
  int64_t block_values() const override { return 1; }
  bool is_lossy() const override { return false; }
  int64_t encoded_bytes(int64_t n) const override { return n * int64_t{sizeof(float)}; }
  void encode(std::span<const float> values, std::span<std::byte> bytes) const override;
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;
};

}  // namespace farstep
