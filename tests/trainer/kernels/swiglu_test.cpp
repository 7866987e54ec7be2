#include "trainer/kernels/swiglu.h"

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

namespace {

struct SwigluReference {
  std::vector<double> out, gate_up_gradient;
};

template <typename T>
SwigluReference reference(const std::vector<T>& gate_up, const std::vector<float>& d_out,
                          std::size_t rows, std::size_t width) {
  SwigluReference result{.out = std::vector<double>(rows * width),
                         .gate_up_gradient = std::vector<double>(2 * rows * width)};
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t at = row * 2 * width + i;
      const double gate = to_float(gate_up[at]);
      const double up = to_float(gate_up[at + width]);
      const double share = 1 / (1 + std::exp(-gate));
      const double d = d_out[row * width + i];
      result.out[row * width + i] = gate * share * up;
      result.gate_up_gradient[at] = d * up * share * (1 + gate * (1 - share));
      result.gate_up_gradient[at + width] = d * gate * share;
    }
  }
  return result;
}

void forward(const std::vector<float>& x, int64_t rows, int64_t width, std::vector<float>& kept,
             std::vector<float>& out) {
  kept = x;
  swiglu(x.data(), rows, width, out.data());
}
void forward(const std::vector<float>& x, int64_t rows, int64_t width, std::vector<BF16>& kept,
             std::vector<BF16>& out) {
  swiglu(x.data(), rows, width, kept.data(), out.data());
}

}  // namespace

TEMPLATE_TEST_CASE("SwiGLU and its gradients are those of fp64", "", float, BF16) {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t width : {1, 10, 16, 33, 688}) {
    for (const int64_t rows : {0, 1, 3}) {
      const double scale = GENERATE(0.1, 3.0, 300.0);
      const auto x = random_values(rows * 2 * width, scale);
      const auto d_out = random_values(rows * width);
      std::vector<TestType> kept(x.size()), out(d_out.size()), again(d_out.size());
      std::vector<TestType> gradient(x.size());
      forward(x, rows, width, kept, out);
      const auto wanted =
          reference(kept, d_out, static_cast<std::size_t>(rows), static_cast<std::size_t>(width));
      CHECK(relative_error(out, wanted.out, 1e-6) < kTolerance<TestType>);
      CHECK(relative_error(kept, {x.begin(), x.end()}) < kTolerance<TestType>);
      swiglu_backward(d_out.data(), kept.data(), rows, width, gradient.data(), again.data());
      CHECK(relative_error(again, wanted.out, 1e-6) < kTolerance<TestType>);
      CHECK(relative_error(gradient, wanted.gate_up_gradient, 1e-6) < kTolerance<TestType>);
    }
  }
}

TEMPLATE_TEST_CASE("SwiGLU hides no NaN", "", float, BF16) {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const int64_t width = 33;
  for (const uint32_t bits : {0x7fc00000U, 0xffc00000U, 0x7f800001U}) {
    for (const int64_t bad : {int64_t{0}, int64_t{20}, width - 1}) {
      auto x = random_values(2 * width);
      const auto d_out = random_values(width);
      x[static_cast<std::size_t>(bad)] = std::bit_cast<float>(bits);
      std::vector<TestType> kept(x.size()), out(d_out.size()), again(d_out.size());
      std::vector<TestType> gradient(x.size());
      forward(x, 1, width, kept, out);
      swiglu_backward(d_out.data(), kept.data(), 1, width, gradient.data(), again.data());
      for (int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<std::size_t>(i);
        CHECK(std::isnan(to_float(out[at])) == (i == bad));
        CHECK(std::isnan(to_float(again[at])) == (i == bad));
        CHECK(std::isnan(to_float(gradient[at])) == (i == bad));
        CHECK(std::isnan(to_float(gradient[at + width])) == (i == bad));
      }
    }
  }
}

}  // namespace farstep
