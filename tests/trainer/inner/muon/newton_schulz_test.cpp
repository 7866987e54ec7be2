#include "trainer/inner/muon/newton_schulz.h"

#include <utility>

#include "tests/support/catch.h"

namespace farstep {
namespace {

at::Tensor orthogonalised_alone(const at::Tensor& matrix, int64_t iterations) {
  return orthogonalised(matrix.unsqueeze(0), iterations).squeeze(0);
}

TEST_CASE("the singular values of an update are near 1") {
  at::manual_seed(3);
  const std::pair<int64_t, int64_t> shapes[] = {{1, 1},   {1, 9},   {9, 1},
                                                {16, 16}, {48, 20}, {7, 60}};
  for (const auto& [rows, columns] : shapes) {
    const auto matrix = at::randn({rows, columns}) * 1e-3;
    const auto made = orthogonalised_alone(matrix, 5).to(at::kFloat);
    CHECK(made.sizes() == matrix.sizes());
    // A square matrix may have a singular value near 0, which needs more iterations.
    if (rows == columns && rows > 1) continue;
    const auto singular = at::linalg_svdvals(made);
    CHECK(singular.min().item<double>() > 0.5);
    CHECK(singular.max().item<double>() < 1.4);
  }
}

// The same iteration in fp32, by LibTorch's products.
at::Tensor orthogonalised_in_fp32(const at::Tensor& matrix, int64_t iterations) {
  const bool is_tall = matrix.size(0) > matrix.size(1);
  auto x = is_tall ? matrix.t() : matrix;
  x = x / x.norm();
  for (int64_t i = 0; i < iterations; ++i) {
    const auto gram = at::mm(x, x.t());
    x = 3.4445 * x + at::mm(-4.7750 * gram + 2.0315 * at::mm(gram, gram), x);
  }
  return is_tall ? x.t() : x;
}

TEST_CASE("an update is that of the iteration in fp32, within bf16's rounding") {
  at::manual_seed(4);
  // 256 rows are a block of the symmetric product.
  const std::pair<int64_t, int64_t> shapes[] = {{255, 300}, {256, 256}, {257, 513}, {700, 600}};
  for (const auto& [rows, columns] : shapes) {
    INFO(rows << " x " << columns);
    const auto matrix = at::randn({rows, columns});
    for (const int64_t iterations : {1, 5}) {
      const auto wanted = orthogonalised_in_fp32(matrix, iterations);
      const auto error = orthogonalised_alone(matrix, iterations).to(at::kFloat) - wanted;
      CHECK((error.norm() / wanted.norm()).item<double>() < 0.02);
    }
  }
}

TEST_CASE("several matrices become what each becomes alone") {
  at::manual_seed(5);
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{40, 24}, {24, 40}}) {
    const auto matrices = at::randn({3, rows, columns});
    const auto made = orthogonalised(matrices, 5);
    for (int64_t i = 0; i < 3; ++i) CHECK(at::equal(made[i], orthogonalised_alone(matrices[i], 5)));
  }
}

TEST_CASE("a matrix of zeros stays one, and leaves the others of its batch") {
  const auto ones = at::ones({1, 3, 5});
  const auto made = orthogonalised(at::cat({at::zeros({1, 3, 5}), ones}), 5);
  CHECK(made[0].eq(0).all().item<bool>());
  CHECK(at::equal(made[1], orthogonalised(ones, 5)[0]));
}

}  // namespace
}  // namespace farstep
