#include "trainer/kernels/adamw.h"

#include <limits>

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/adamw_step.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

namespace {

// The update as torch's documentation writes it, in fp64.
void reference(const AdamWStep& step, const std::vector<float>& gradients,
               std::vector<double>& values, std::vector<double>& first,
               std::vector<double>& second) {
  const double rate = step.learning_rate;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double gradient = static_cast<double>(gradients[i]) * step.gradient_factor;
    values[i] -= rate * step.weight_decay * values[i];
    first[i] = step.beta1 * first[i] + (1 - static_cast<double>(step.beta1)) * gradient;
    second[i] =
        step.beta2 * second[i] + (1 - static_cast<double>(step.beta2)) * gradient * gradient;
    values[i] -= rate * first[i] / step.correction1 /
                 (std::sqrt(second[i] / step.correction2) + step.epsilon);
  }
}

}  // namespace

TEST_CASE("an update is that of fp64 and the copy is the values rounded") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  auto step = kThirdStep;
  step.gradient_factor = 0.3F;
  for (const int64_t size : {0, 1, 15, 16, 1000}) {
    auto values = random_values(size);
    auto first = random_values(size, 0.1);
    auto second = random_values(size, 0.1);
    for (auto& value : second) value *= value;
    const auto gradients = random_values(size);
    std::vector<double> values_wanted(values.begin(), values.end());
    std::vector<double> first_wanted(first.begin(), first.end());
    std::vector<double> second_wanted(second.begin(), second.end());
    reference(step, gradients, values_wanted, first_wanted, second_wanted);
    auto other_values = values;
    auto other_first = first;
    auto other_second = second;
    std::vector<BF16> copy(values.size());
    adamw(step, gradients.data(), size, values.data(), first.data(), second.data(), copy.data());
    CHECK(relative_error(values, values_wanted, 0.1) < 1e-6);
    CHECK(relative_error(first, first_wanted, 0.1) < 1e-6);
    CHECK(relative_error(second, second_wanted, 0.01) < 1e-6);
    adamw(step, gradients.data(), size, other_values.data(), other_first.data(),
          other_second.data(), nullptr);
    CHECK(other_values == values);
    CHECK(other_first == first);
    CHECK(other_second == second);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < copy.size(); ++i) {
      wrong += copy[i].bits != rounded<BF16>(values[i]).bits;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("squares are summed in fp64 and not finite where a value is not") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t size : {0, 1, 17, 100000}) {
    const auto values = random_values(size, 1e20);
    double wanted = 0;
    for (const double value : values) wanted += value * value;
    CHECK(sum_of_squares(values.data(), size) == Approx(wanted).epsilon(1e-12));
  }
  std::vector<float> values(33, 1);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    values[31] = bad;
    CHECK(!std::isfinite(sum_of_squares(values.data(), 33)));
  }
}

}  // namespace farstep
