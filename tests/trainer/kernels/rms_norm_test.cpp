#include "trainer/kernels/rms_norm.h"

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

namespace {

constexpr double kEpsilon = 1e-5;

struct NormReference {
  std::vector<double> y, inverse_rms, x_gradient, weight_gradient;
};

// `x_gradient` and `weight_gradient` begin with 0.
NormReference reference(const std::vector<float>& x, const std::vector<float>& weight,
                        const std::vector<float>& dy, std::size_t rows) {
  const std::size_t width = weight.size();
  NormReference result{.y = std::vector<double>(x.size()),
                       .inverse_rms = {},
                       .x_gradient = std::vector<double>(x.size()),
                       .weight_gradient = std::vector<double>(width)};
  for (std::size_t row = 0; row < rows; ++row) {
    double squares = 0;
    double product = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double value = x[row * width + i];
      squares += value * value;
      product += value * weight[i] * dy[row * width + i];
    }
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + kEpsilon);
    result.inverse_rms.push_back(inverse);
    for (std::size_t i = 0; i < width; ++i) {
      const double value = x[row * width + i];
      const double gradient = dy[row * width + i];
      result.y[row * width + i] = value * inverse * weight[i];
      result.weight_gradient[i] += gradient * value * inverse;
      result.x_gradient[row * width + i] =
          gradient * weight[i] * inverse -
          value * product * std::pow(inverse, 3) / static_cast<double>(width);
    }
  }
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("RMSNorm and its gradients are those of fp64", "", float, BF16) {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t width : {1, 2, 12, 17, 256, 1031}) {
    for (const int64_t rows : {0, 1, 5}) {
      const double scale = GENERATE(1e-3, 1.0, 1e3);
      const auto x = random_values(rows * width, scale);
      const auto weight = random_values(width);
      const auto dy = random_values(rows * width);
      const auto wanted = reference(x, weight, dy, static_cast<std::size_t>(rows));
      std::vector<TestType> y(x.size());
      std::vector<float> inverse(static_cast<std::size_t>(rows)), copy(x.size());
      rms_norm(x.data(), weight.data(), rows, width, kEpsilon, y.data(), inverse.data(),
               copy.data());
      CHECK(relative_error(y, wanted.y) < kTolerance<TestType>);
      CHECK(relative_error(inverse, wanted.inverse_rms) < 1e-6);
      CHECK(copy == x);
      auto y_alone = y;
      rms_norm(x.data(), weight.data(), rows, width, kEpsilon, y_alone.data(), nullptr, nullptr);
      CHECK(relative_error(y_alone, wanted.y) < kTolerance<TestType>);

      std::vector<float> dx(x.size()), dweight(weight.size());
      std::vector<TestType> rounded_dx(x.size());
      rms_norm_backward(dy.data(), x.data(), weight.data(), inverse.data(), rows, width, dx.data(),
                        dweight.data(), rounded_dx.data());
      // With one element alone y is a sign: its gradient in x is a difference of equal numbers.
      if (width > 1) {
        CHECK(relative_error(dx, wanted.x_gradient, 0.1 / scale) < 1e-5);
        CHECK(relative_error(rounded_dx, wanted.x_gradient, 0.1 / scale) <
              kTolerance<TestType> + 1e-5);
      }
      CHECK(relative_error(dweight, wanted.weight_gradient, 1) < 2e-6);
    }
  }
}

TEST_CASE("the gradients of RMSNorm are added to what is there") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const auto x = random_values(6);
  const auto weight = random_values(3);
  const auto dy = random_values(6);
  std::vector<float> inverse(2), y(6), once(6), twice(6), dweight(3), dweight_twice(3);
  rms_norm(x.data(), weight.data(), 2, 3, kEpsilon, y.data(), inverse.data(), nullptr);
  const auto add = [&](std::vector<float>& dx, std::vector<float>& dw) {
    rms_norm_backward(dy.data(), x.data(), weight.data(), inverse.data(), 2, 3, dx.data(),
                      dw.data(), static_cast<float*>(nullptr));
  };
  add(once, dweight);
  add(twice, dweight_twice);
  add(twice, dweight_twice);
  for (std::size_t i = 0; i < 6; ++i) CHECK(twice[i] == Approx(2 * once[i]).margin(1e-6));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(dweight_twice[i] == Approx(2 * dweight[i]).margin(1e-6));
}

}  // namespace farstep
