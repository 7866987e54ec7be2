#include "outer_optimizer/codec/codec.h"

#include <cstring>

#include "trainer/base/error.h"

namespace farstep {

void Fp32Codec::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  FARSTEP_CHECK(bytes.size() == values.size_bytes(), "{} bytes for {} values", bytes.size(),
                values.size());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
}

void Fp32Codec::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  FARSTEP_CHECK(bytes.size() == values.size_bytes(), "{} bytes for {} values", bytes.size(),
                values.size());
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace farstep
