// Each value travels as its 16 upper bits, rounded: no scale, no block, and so no dependence
// between values.
#include "outer_optimizer/codec/float_codecs.h"

#include <cstring>

#include "outer_optimizer/codec/float_formats.h"
#include "trainer/base/processor/vector_dispatch.h"

namespace farstep::outer_optimizer {

namespace {

// By memcpy, because encoded bytes need not be aligned. Compilers make vector stores of it.
template <typename Format>
void encode_values(const float* __restrict values, std::byte* __restrict bytes, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const uint16_t shortened = Format::shorten(values[k]);
    std::memcpy(bytes + 2 * k, &shortened, 2);
  }
}

template <typename Format>
void decode_values(const std::byte* __restrict bytes, float* __restrict values, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    uint16_t shortened = 0;
    std::memcpy(&shortened, bytes + 2 * k, 2);
    values[k] = Format::lengthen(shortened);
  }
}

}  // namespace

template <typename Format>
std::string_view FloatCodec<Format>::name() const {
  return Format::kName;
}

template <typename Format>
float FloatCodec<Format>::largest_value() const {
  return Format::kLargest;
}

template <typename Format>
void FloatCodec<Format>::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_size(bytes.size(), values.size());
  run_vector_code<encode_values<Format>>(values.data(), bytes.data(), std::ssize(values));
}

template <typename Format>
void FloatCodec<Format>::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_size(bytes.size(), values.size());
  run_vector_code<decode_values<Format>>(bytes.data(), values.data(), std::ssize(values));
}

template class FloatCodec<Fp16Format>;
template class FloatCodec<Bf16Format>;

}  // namespace farstep::outer_optimizer
