#include "trainer/kernels/embedding.h"

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

TEST_CASE("tokens pick rows and gradients add up in the rows they picked") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const int64_t vocabulary = 5;
  for (const int64_t width : {1, 7, 64}) {
    for (const int64_t rows : {0, 1, 40}) {
      const auto table = random_values(vocabulary * width);
      const auto tokens = random_tokens(rows, vocabulary);
      std::vector<float> x(static_cast<std::size_t>(rows * width));
      embed(table.data(), tokens.data(), rows, width, x.data());
      const auto dx = random_values(rows * width);
      auto gradient = random_values(vocabulary * width);
      std::vector<double> wanted(gradient.begin(), gradient.end());
      std::size_t wrong = 0;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < width; ++i) {
          const auto from = static_cast<std::size_t>(row * width + i);
          const auto to =
              static_cast<std::size_t>(tokens[static_cast<std::size_t>(row)] * width + i);
          wrong += x[from] != table[to];
          wanted[to] += dx[from];
        }
      }
      CHECK(wrong == 0);
      auto at_once = gradient;
      embed_backward(dx.data(), tokens.data(), rows, width, 0, width, at_once.data());
      embed_backward(dx.data(), tokens.data(), rows, width, 0, width / 2, gradient.data());
      embed_backward(dx.data(), tokens.data(), rows, width, width / 2, width, gradient.data());
      CHECK(gradient == at_once);
      CHECK(relative_error(gradient, wanted) < 2e-6);
    }
  }
}

}  // namespace farstep
