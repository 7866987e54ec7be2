#include "trainer/model/matrix_product.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "trainer/kernels/amx.h"
#include "trainer/kernels/amx_product.h"
#include "trainer/model/parallel_rows.h"

// LibTorch exports these of the MKL it contains, and ships no header. Column-major.
extern "C" {
[[gnu::weak]] void sgemm_(const char* transpose_a, const char* transpose_b, const int* m,
                          const int* n, const int* k, const float* alpha, const float* a,
                          const int* stride_a, const float* b, const int* stride_b,
                          const float* beta, float* c, const int* stride_c);
[[gnu::weak]] void gemm_bf16bf16f32_(const char* transpose_a, const char* transpose_b, const int* m,
                                     const int* n, const int* k, const float* alpha, const void* a,
                                     const int* stride_a, const void* b, const int* stride_b,
                                     const float* beta, float* c, const int* stride_c);
}

namespace farstep {

namespace {

// A row-major product is the column-major one of the factors in the other order.
template <typename Gemm, typename T>
void multiply_by(const Gemm& gemm, int64_t m, int64_t n, int64_t k, const Factor<T>& a,
                 const Factor<T>& b, const Product& c) {
  const auto narrow = [](int64_t size) { return static_cast<int>(size); };
  const int rows = narrow(n), columns = narrow(m), inner = narrow(k);
  const int stride_a = narrow(b.stride), stride_b = narrow(a.stride), stride_c = narrow(c.stride);
  const float alpha = 1.0F;
  const float beta = c.add ? 1.0F : 0.0F;
  gemm(b.transposed ? "T" : "N", a.transposed ? "T" : "N", &rows, &columns, &inner, &alpha,
       b.values, &stride_a, a.values, &stride_b, &beta, c.values, &stride_c);
}

template <typename T>
at::Tensor fp32_tensor(const Factor<T>& factor, int64_t rows, int64_t columns) {
  constexpr auto kType = sizeof(T) == sizeof(float) ? at::kFloat : at::kBFloat16;
  const std::array<int64_t, 2> along{factor.stride, 1}, across{1, factor.stride};
  // Torch has no tensor of constant memory; it is only read.
  return at::from_blob(const_cast<T*>(factor.values), {rows, columns},
                       factor.transposed ? across : along, kType)
      .to(at::kFloat);
}

// The rows of the factor from `first` on; columns of what lies there where it is transposed.
template <typename T>
Factor<T> rows_from(const Factor<T>& factor, int64_t first) {
  return {factor.values + first * (factor.transposed ? 1 : factor.stride), factor.stride,
          factor.transposed};
}

template <typename T>
Factor<T> columns_from(const Factor<T>& factor, int64_t first) {
  return {factor.values + first * (factor.transposed ? factor.stride : 1), factor.stride,
          factor.transposed};
}

// A side of a product in equal parts of whole tiles.
struct Split {
  int64_t size = 0, parts = 0;

  static constexpr int64_t kUnit = 32;
  static int64_t units(int64_t size) { return (size + kUnit - 1) / kUnit; }
  int64_t begin(int64_t part) const { return std::min(size, units(size) * part / parts * kUnit); }
};

}  // namespace

void multiply_by_amx(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                     const Product& c) {
  // A thread packs all of one factor and its part of the other, so that parts of the side that
  // amx_multiply keeps come first, unless they become narrow.
  constexpr int64_t kLeastUnits = 8;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t kept = a.transposed ? m : n, other = a.transposed ? n : m;
  const int64_t parts = std::clamp<int64_t>(Split::units(kept) / kLeastUnits, 1, threads);
  const Split kept_split{kept, parts};
  const Split other_split{other, std::clamp<int64_t>(threads / parts, 1, Split::units(other))};
  const auto& rows = a.transposed ? kept_split : other_split;
  const auto& columns = a.transposed ? other_split : kept_split;
  for_rows(rows.parts * columns.parts, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t row_part = part / columns.parts, column_part = part % columns.parts;
      const int64_t row = rows.begin(row_part), column = columns.begin(column_part);
      amx_multiply(rows.begin(row_part + 1) - row, columns.begin(column_part + 1) - column, k,
                   rows_from(a, row), columns_from(b, column),
                   {c.values + row * c.stride + column, c.stride, c.add, c.past_cache});
    }
  });
}

template <>
void multiply_by_mkl(int64_t m, int64_t n, int64_t k, const Factor<float>& a,
                     const Factor<float>& b, const Product& c) {
  multiply_by(sgemm_, m, n, k, a, b, c);
}

template <>
void multiply_by_mkl(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                     const Product& c) {
  multiply_by(gemm_bf16bf16f32_, m, n, k, a, b, c);
}

template <typename T>
void multiply_by_libtorch(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                          const Product& c) {
  auto product = at::from_blob(c.values, {m, n}, {c.stride, 1}, at::kFloat);
  at::addmm_out(product, product, fp32_tensor(a, m, k), fp32_tensor(b, k, n),
                /*beta=*/c.add ? 1 : 0);
}

template void multiply_by_libtorch(int64_t, int64_t, int64_t, const Factor<float>&,
                                   const Factor<float>&, const Product&);
template void multiply_by_libtorch(int64_t, int64_t, int64_t, const Factor<BF16>&,
                                   const Factor<BF16>&, const Product&);

void multiply(int64_t m, int64_t n, int64_t k, const Factor<float>& a, const Factor<float>& b,
              const Product& c) {
  if (sgemm_ != nullptr) {
    multiply_by_mkl(m, n, k, a, b, c);
  } else {
    multiply_by_libtorch(m, n, k, a, b, c);
  }
}

void multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
              const Product& c) {
  if (has_amx()) {
    multiply_by_amx(m, n, k, a, b, c);
  } else if (gemm_bf16bf16f32_ != nullptr) {
    multiply_by_mkl(m, n, k, a, b, c);
  } else {
    multiply_by_libtorch(m, n, k, a, b, c);
  }
}

}  // namespace farstep
