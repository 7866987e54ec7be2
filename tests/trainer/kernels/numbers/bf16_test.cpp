#include "trainer/kernels/numbers/bf16.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"
#include "trainer/kernels/numbers/convert.h"
#include "trainer/kernels/numbers/vector_code.h"

namespace farstep {

TEST_CASE("every bf16 survives the way to fp32 and back") {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const BF16 x{static_cast<uint16_t>(bits)};
    const auto again = rounded<BF16>(to_float(x));
    if (std::isnan(to_float(x))) {
      CHECK(std::isnan(to_float(again)));
    } else if (again.bits != x.bits) {
      FAIL(bits << " became " << again.bits);
    }
  }
}

TEST_CASE("rounding to bf16 takes the nearest and ties go to even") {
  CHECK(rounded<BF16>(1.0F + 0x1p-8F).bits == rounded<BF16>(1.0F).bits);
  CHECK(to_float(rounded<BF16>(1.0F + 0x3p-8F)) == 1.0F + 0x1p-6F);
  CHECK(to_float(rounded<BF16>(1.0F + 0x1.01p-8F)) == 1.0F + 0x1p-7F);
  CHECK(std::isinf(to_float(rounded<BF16>(std::numeric_limits<float>::max()))));
  for (const uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xffffffffU, 0xff800001U}) {
    CHECK(std::isnan(to_float(rounded<BF16>(std::bit_cast<float>(nan)))));
  }
}

TEST_CASE("rows are rounded wherever they lie and what is between them is left") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t width : {0, 1, 5, 16, 37}) {
    const int64_t rows = 3;
    const auto from = random_values(rows * (width + 2));
    std::vector<BF16> to(static_cast<std::size_t>(rows * (width + 1)), BF16{7});
    round_rows(from.data(), width + 2, rows, width, to.data(), width + 1);
    std::size_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < width; ++i) {
        const auto value = from[static_cast<std::size_t>(row * (width + 2) + i)];
        wrong +=
            to[static_cast<std::size_t>(row * (width + 1) + i)].bits != rounded<BF16>(value).bits;
      }
      wrong += to[static_cast<std::size_t>(row * (width + 1) + width)].bits != 7;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the exponential is within 2e-7 and ends where fp32 does") {
  double worst = 0;
  std::size_t wrong = 0;
  for (float x = -87; x < 87; x += 0.00137F) {
    const double wanted = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(vector_exp(x) - wanted) / wanted);
    if (x <= 0) wrong += vector_exp_of_negative(x) != vector_exp(x);
  }
  CHECK(worst < 2e-7);
  CHECK(wrong == 0);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float below : {-infinity, -1e30F, -88.0F}) {
    CHECK(vector_exp(below) == vector_exp(-87));
    CHECK(vector_exp_of_negative(below) == vector_exp(-87));
  }
  for (const float above : {infinity, 1e30F, 88.0F}) CHECK(vector_exp(above) == vector_exp(87));
  for (const float tiny : {0.0F, 1e-40F, 1e-30F}) {
    CHECK(vector_exp(tiny) == 1);
    CHECK(vector_exp(-tiny) == 1);
  }
  for (const uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xffffffffU, 0xffc00000U}) {
    CHECK(std::isnan(vector_exp(std::bit_cast<float>(nan))));
    CHECK(std::isnan(vector_exp_of_negative(std::bit_cast<float>(nan))));
  }
}

TEST_CASE("the sigmoid is within 4e-7 and ends near 0 and at 1") {
  double worst = 0;
  for (float x = -87; x < 87; x += 0.00137F) {
    const double wanted = 1 / (1 + std::exp(-static_cast<double>(x)));
    worst = std::max(worst, std::abs(vector_sigmoid(x) - wanted) / wanted);
  }
  CHECK(worst < 4e-7);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float above : {infinity, 1e30F, 88.0F}) {
    CHECK(vector_sigmoid(above) == 1);
    CHECK(vector_sigmoid(-above) == vector_sigmoid(-87));
  }
  CHECK(vector_sigmoid(-87) < 2e-38F);
}

}  // namespace farstep
