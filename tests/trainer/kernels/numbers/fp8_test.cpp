#include "trainer/kernels/numbers/fp8.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

namespace {

template <Fp8Format format>
constexpr auto kType = format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;

template <Fp8Format format>
using Kind = std::integral_constant<Fp8Format, format>;

// Codes of `values` by LibTorch, after what does not fit has been cut off.
template <Fp8Format format>
std::vector<uint8_t> libtorch_codes(const std::vector<float>& values) {
  const auto x = at::tensor(values).clamp(-kFp8Traits<format>.largest, kFp8Traits<format>.largest);
  const auto codes = x.to(kType<format>).view(at::kByte);
  const auto* const first = codes.template const_data_ptr<uint8_t>();
  return {first, first + codes.numel()};
}

template <Fp8Format format>
std::size_t wrong_codes(const std::vector<float>& values) {
  const auto wanted = libtorch_codes<format>(values);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto code = fp8_code<format>(values[i]);
    wrong += code != wanted[i];
  }
  return wrong;
}

BF16 of_bits(uint32_t bits) {
  return {static_cast<uint16_t>(bits)};
}

}  // namespace

TEMPLATE_TEST_CASE("every code is the value that LibTorch has for it", "", Kind<Fp8Format::kE4M3>,
                   Kind<Fp8Format::kE5M2>) {
  constexpr auto kFormat = TestType::value;
  for (int code = 0; code < 256; ++code) {
    const auto own = static_cast<uint8_t>(code);
    const auto wanted = at::tensor({own}, at::kByte).view(kType<kFormat>).to(at::kFloat);
    const float exact = wanted.template item<float>();
    INFO(code);
    if (std::isfinite(exact)) {
      CHECK(std::bit_cast<uint32_t>(fp8_value<kFormat>(own)) == std::bit_cast<uint32_t>(exact));
      CHECK(fp8_code<kFormat>(exact) == own);
    } else {
      CHECK(fp8_code<kFormat>(exact) == kFp8Nan);
    }
  }
  CHECK(std::isnan(fp8_value<kFormat>(kFp8Nan)));
}

TEMPLATE_TEST_CASE("every bf16 and every tie becomes the code that LibTorch gives", "",
                   Kind<Fp8Format::kE4M3>, Kind<Fp8Format::kE5M2>) {
  constexpr auto kFormat = TestType::value;
  std::vector<float> values;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    if (std::isfinite(to_float(of_bits(bits)))) values.push_back(to_float(of_bits(bits)));
  }
  for (int code = 0; code < 0x7f; ++code) {
    const float below = fp8_value<kFormat>(static_cast<uint8_t>(code));
    const float above = fp8_value<kFormat>(static_cast<uint8_t>(code + 1));
    const float tie = below + (above - below) / 2;
    if (!std::isfinite(tie)) continue;
    for (const float value : {std::nextafter(tie, 0.0F), tie, std::nextafter(tie, above)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  CHECK(wrong_codes<kFormat>(values) == 0);
  CHECK(wrong_codes<kFormat>(random_values(100000, 3)) == 0);
  CHECK(wrong_codes<kFormat>(random_values(100000, 1e-3)) == 0);
}

TEMPLATE_TEST_CASE("the scale is the largest power of two that keeps a magnitude in range", "",
                   Kind<Fp8Format::kE4M3>, Kind<Fp8Format::kE5M2>) {
  constexpr auto kFormat = TestType::value;
  const double largest = kFp8Traits<kFormat>.largest;
  std::size_t wrong = 0;
  for (uint32_t bits = 1; bits < 0x7f80; ++bits) {
    const double magnitude = to_float(of_bits(bits));
    const auto scale = fp8_scale<kFormat>(bits);
    const double factor = scale.factor;
    wrong += std::exp2(std::round(std::log2(factor))) != factor || scale.inverse * factor != 1;
    wrong += magnitude * factor > largest;
    wrong += 2 * magnitude * factor <= largest && scale.factor != 0x1p126F;
  }
  CHECK(wrong == 0);
  for (const uint32_t bits : {0x0U, 0x7f80U, 0x7fc0U}) {
    CHECK(fp8_scale<kFormat>(bits).factor == 1);
    CHECK(fp8_scale<kFormat>(bits).inverse == 1);
  }
}

TEST_CASE("the largest magnitude is found wherever it is") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t size : {0, 1, 7, 64, 1001}) {
    auto x = as<BF16>(random_values(size));
    uint32_t largest = 0;
    for (const BF16 value : x) {
      largest = std::max(largest, uint32_t{rounded<BF16>(std::abs(to_float(value))).bits});
    }
    CHECK(largest_magnitude_bits(x.data(), size) == largest);
    for (std::size_t at = 0; at < x.size(); at += 13) {
      auto other = x;
      other[at] = rounded<BF16>(-1e6F);
      CHECK(largest_magnitude_bits(other.data(), size) == rounded<BF16>(1e6F).bits);
      other[at] = of_bits(0xffc0);
      CHECK(largest_magnitude_bits(other.data(), size) > 0x7f80);
    }
  }
}

TEST_CASE("values are rounded in bf16 as LibTorch rounds them when scaled") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    const auto type = format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
    for (const double deviation : {1e-20, 1e-3, 1.0, 1e12}) {
      for (const int64_t size : {0, 1, 17, 4099}) {
        const auto x = as<BF16>(random_values(size, deviation));
        const auto bits = largest_magnitude_bits(x.data(), size);
        const auto scale = format == Fp8Format::kE4M3 ? fp8_scale<Fp8Format::kE4M3>(bits)
                                                      : fp8_scale<Fp8Format::kE5M2>(bits);
        auto wanted = at::empty({size}, at::kFloat);
        for (int64_t i = 0; i < size; ++i) wanted[i] = to_float(x[static_cast<std::size_t>(i)]);
        wanted = (wanted * scale.factor).to(type).to(at::kFloat) * scale.inverse;
        auto y = x;
        round_to_fp8(format, y.data(), size, bits, y.data());
        std::size_t wrong = 0;
        for (int64_t i = 0; i < size; ++i) {
          const float own = to_float(y[static_cast<std::size_t>(i)]);
          wrong += own != wanted[i].item<float>();
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("what is not finite stays so and zeros stay zeros") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  std::vector<BF16> x = as<BF16>({1, 0, -2, std::numeric_limits<float>::infinity(), -0.0F});
  x.push_back(of_bits(0x7fc0));
  round_to_fp8(Fp8Format::kE4M3, x.data(), 6, largest_magnitude_bits(x.data(), 6), x.data());
  CHECK(to_float(x[0]) == 1);
  CHECK(to_float(x[2]) == -2);
  CHECK(std::isnan(to_float(x[3])));
  CHECK(x[4].bits == 0x8000);
  CHECK(std::isnan(to_float(x[5])));
  std::vector<BF16> zeros(9, BF16{0});
  round_to_fp8(Fp8Format::kE5M2, zeros.data(), 9, largest_magnitude_bits(zeros.data(), 9),
               zeros.data());
  for (const BF16 value : zeros) CHECK(value.bits == 0);
}

}  // namespace farstep
