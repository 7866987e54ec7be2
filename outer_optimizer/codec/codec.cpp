#include "outer_optimizer/codec/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "trainer/base/error.h"
#include "trainer/base/processor/vector_dispatch.h"

namespace farstep::outer_optimizer {

static_assert(std::endian::native == std::endian::little,
              "bytes are written as they lie in memory");

namespace {

// Contraction to FMA is off, so that every processor adds with the same rounding.
void add_multiple(float* __restrict sum, float coefficient, const float* __restrict values,
                  std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) sum[k] += coefficient * values[k];
}

}  // namespace

// Piece by piece, so that the decoded values stay in the cache.
void Codec::add_decoded(std::span<const std::byte> bytes, float coefficient,
                        std::span<float> sum) const {
  check_size(bytes.size(), sum.size());
  const std::size_t piece = std::min(sum.size(), static_cast<std::size_t>(piece_values(*this)));
  const auto decoded = std::make_unique_for_overwrite<float[]>(piece);
  while (!sum.empty()) {
    const std::size_t count = std::min(sum.size(), piece);
    const auto size_bytes = static_cast<std::size_t>(encoded_bytes(static_cast<int64_t>(count)));
    decode(bytes.first(size_bytes), {decoded.get(), count});
    run_vector_code<add_multiple>(sum.data(), coefficient, decoded.get(), count);
    bytes = bytes.subspan(size_bytes);
    sum = sum.subspan(count);
  }
}

void Codec::check_size(std::size_t bytes, std::size_t n) const {
  const auto expected = static_cast<std::size_t>(encoded_bytes(static_cast<int64_t>(n)));
  FARSTEP_CHECK(bytes == expected, "{} bytes for {} values in {}, which take {}", bytes, n, name(),
                expected);
}

int64_t count_saturated(const Codec& codec, std::span<const float> values) {
  const float largest = codec.largest_value();
  if (largest == std::numeric_limits<float>::max()) return 0;
  return std::ranges::count_if(values, [&](float value) { return std::abs(value) > largest; });
}

int64_t piece_values(const Codec& codec) {
  // Decoded values stay in the first-level cache until they are added.
  constexpr int64_t kPieceValues = 4096;  // 16 KiB of fp32
  return std::max<int64_t>(1, kPieceValues / codec.block_values()) * codec.block_values();
}

void Fp32Codec::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_size(bytes.size(), values.size());
  // memcpy() must not get null, also not for no bytes.
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
}

void Fp32Codec::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_size(bytes.size(), values.size());
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace farstep::outer_optimizer
