#include "trainer/kernels/cross_entropy.h"

#include <limits>

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

TEMPLATE_TEST_CASE("cross-entropy and its gradient are those of fp64", "", float, BF16) {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const double spread = GENERATE(0.0, 0.1, 3.0, 60.0);
  for (const int64_t vocabulary : {1, 2, 29, 64, 4097}) {
    for (const int64_t rows : {0, 1, 4}) {
      const float scale = 0.37F;
      const auto logits = random_values(rows * vocabulary, spread);
      const auto targets = random_tokens(rows, vocabulary);
      std::vector<double> losses_wanted, gradient_wanted;
      for (int64_t row = 0; row < rows; ++row) {
        const float* const z = logits.data() + row * vocabulary;
        const double largest = *std::max_element(z, z + vocabulary);
        double sum = 0;
        for (int64_t i = 0; i < vocabulary; ++i) sum += std::exp(z[i] - largest);
        const int64_t target = targets[static_cast<std::size_t>(row)];
        losses_wanted.push_back(std::log(sum) + largest - z[target]);
        for (int64_t i = 0; i < vocabulary; ++i) {
          const double hit = i == target ? 1 : 0;
          gradient_wanted.push_back(scale * (std::exp(z[i] - largest) / sum - hit));
        }
      }
      auto overwritten = logits;
      std::vector<float> losses(static_cast<std::size_t>(rows)), alone(losses);
      std::vector<TestType> gradient(logits.size());
      cross_entropy(overwritten.data(), targets.data(), rows, vocabulary, scale, losses.data(),
                    gradient.data());
      const double tolerance = 1e-6 * (1 + spread);
      CHECK(relative_error(losses, losses_wanted, 1) < tolerance);
      CHECK(relative_error(gradient, gradient_wanted, scale) < kTolerance<TestType> + tolerance);
      overwritten = logits;
      cross_entropy(overwritten.data(), targets.data(), rows, vocabulary, alone.data());
      CHECK(alone == losses);
    }
  }
}

TEST_CASE("the gradient of cross-entropy may take the place of the logits") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  auto in_place = random_values(3 * 41);
  auto logits = in_place;
  const auto targets = random_tokens(3, 41);
  std::vector<float> losses(3), gradient(logits.size());
  cross_entropy(logits.data(), targets.data(), 3, 41, 1, losses.data(), gradient.data());
  cross_entropy(in_place.data(), targets.data(), 3, 41, 1, losses.data(), in_place.data());
  CHECK(in_place == gradient);
}

TEST_CASE("the loss is not finite where a logit is not") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), infinity}) {
    for (const int64_t where : {0, 20, 40}) {
      auto logits = random_values(41);
      logits[static_cast<std::size_t>(where)] = bad;
      const int64_t target = 7;
      float loss = 0;
      cross_entropy(logits.data(), &target, 1, 41, &loss);
      CHECK(!std::isfinite(loss));
    }
  }
}

}  // namespace farstep
