// Each iteration applies an odd polynomial to the singular values: x -> a x + b x^3 + c x^5. For a
// matrix X that is (a I + b G + c G^2) X with its Gram matrix G = X X^T.
#include "trainer/inner/muon/newton_schulz.h"

#include <algorithm>
#include <vector>

#include "trainer/model/matmul/matrix_product.h"

namespace farstep {

namespace {

// They raise small singular values fastest. Those of the result are between 0.5 and 1.5, which
// serves as well as 1.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
// A matrix of zeros stays one.
constexpr double kLeastNorm = 1e-7;
// Of a symmetric product. Smaller blocks skip more of the lower half, and multiply more slowly.
constexpr int64_t kRowsOfBlock = 256;

BF16* values_of(const at::Tensor& matrix) {
  return reinterpret_cast<BF16*>(matrix.data_ptr<at::BFloat16>());
}

at::Tensor rounded(const at::Tensor& matrix) {
  return matrix.to(at::kBFloat16);
}

// Returns x x^T in fp32 for a contiguous bf16 matrix. Computes the blocks from the diagonal to the
// right, and mirrors them.
at::Tensor multiply_by_own_transpose(const at::Tensor& x) {
  const int64_t rows = x.size(0), columns = x.size(1);
  auto result = at::empty({rows, rows}, at::kFloat);
  for (int64_t first = 0; first < rows; first += kRowsOfBlock) {
    const auto* const block = values_of(x) + first * columns;
    multiply(std::min(kRowsOfBlock, rows - first), rows - first, columns, {block, columns},
             {block, columns, true}, {result.data_ptr<float>() + first * (rows + 1), rows});
  }
  return result.triu() + result.triu(1).t();
}

// Returns left x in fp32 for contiguous bf16 matrices.
at::Tensor product(const at::Tensor& left, const at::Tensor& x) {
  const int64_t rows = left.size(0), inner = x.size(0), columns = x.size(1);
  auto result = at::empty({rows, columns}, at::kFloat);
  multiply(rows, columns, inner, {values_of(left), inner}, {values_of(x), columns},
           {result.data_ptr<float>(), columns});
  return result;
}

at::Tensor iterate_on_cpu(const at::Tensor& x) {
  const auto gram = rounded(multiply_by_own_transpose(x));
  const auto polynomial = rounded(multiply_by_own_transpose(gram).mul_(kC).add_(gram, kB));
  return rounded(product(polynomial, x).add_(x, kA));
}

// Of all matrices at once: one alone may be too small to fill a GPU.
at::Tensor iterate_on_gpu(const at::Tensor& x) {
  const auto gram = at::bmm(x, x.transpose(1, 2));
  const auto polynomial = at::baddbmm(gram, gram, gram, kB, kC);
  return at::baddbmm(x, polynomial, x, kA);
}

at::Tensor iterate(const at::Tensor& x) {
  if (!x.is_cpu()) return iterate_on_gpu(x);
  std::vector<at::Tensor> made;
  for (const auto& matrix : x.unbind()) made.push_back(iterate_on_cpu(matrix));
  return at::stack(made);
}

}  // namespace

// The smaller of the two Gram matrices makes the cheaper products.
at::Tensor orthogonalised(const at::Tensor& matrices, int64_t iterations) {
  const bool are_tall = matrices.size(1) > matrices.size(2);
  auto x = rounded(are_tall ? matrices.transpose(1, 2) : matrices).contiguous();
  x = x / at::linalg_vector_norm(x, 2, {1, 2}, /*keepdim=*/true).clamp_min(kLeastNorm);
  for (int64_t i = 0; i < iterations; ++i) x = iterate(x);
  return are_tall ? x.transpose(1, 2) : x;
}

}  // namespace farstep
