// How fp32 values travel: a codec turns them into bytes and back.
//
// Decoding is a pure function of the bytes, so all sites that decode the same bytes hold the same
// bits. Codecs have no state; all methods may be called concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace farstep {

class Codec {
 public:
  virtual ~Codec() = default;
  // Its name in configs and reports.
  virtual std::string_view name() const = 0;
  // Bytes of n encoded values.
  virtual int64_t encoded_bytes(int64_t n) const = 0;
  // Encodes all of `values` into `bytes`, which has encoded_bytes(values.size()) bytes.
  virtual void encode(std::span<const float> values, std::span<std::byte> bytes) const = 0;
  // Decodes values.size() values from `bytes`.
  virtual void decode(std::span<const std::byte> bytes, std::span<float> values) const = 0;
};

// The values' own bits.
class Fp32Codec : public Codec {
 public:
  std::string_view name() const override { return "fp32"; }
  int64_t encoded_bytes(int64_t n) const override { return n * int64_t{sizeof(float)}; }
  void encode(std::span<const float> values, std::span<std::byte> bytes) const override;
  void decode(std::span<const std::byte> bytes, std::span<float> values) const override;
};

}  // namespace farstep
