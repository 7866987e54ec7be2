#include "trainer/model/matrix_product.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "trainer/kernels/past_cache.h"
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

template <typename T>
void multiply_by_libtorch(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                          const Product& c) {
  auto product = at::from_blob(c.values, {m, n}, {c.stride, 1}, at::kFloat);
  at::addmm_out(product, product, fp32_tensor(a, m, k), fp32_tensor(b, k, n),
                /*beta=*/c.add ? 1 : 0);
}

}  // namespace

void multiply(int64_t m, int64_t n, int64_t k, const Factor<float>& a, const Factor<float>& b,
              const Product& c) {
  if (sgemm_ == nullptr) return multiply_without_mkl(m, n, k, a, b, c);
  multiply_by(sgemm_, m, n, k, a, b, c);
}

void multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
              const Product& c) {
  if (gemm_bf16bf16f32_ == nullptr) return multiply_without_mkl(m, n, k, a, b, c);
  multiply_by(gemm_bf16bf16f32_, m, n, k, a, b, c);
}

template <typename T>
void multiply_past_cache(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                         const Product& c, std::span<float> scratch) {
  const int64_t step = std::ssize(scratch) / n;
  for (int64_t first = 0; first < m; first += step) {
    const int64_t count = std::min(step, m - first);
    const T* const rows = a.values + first * (a.transposed ? 1 : a.stride);
    multiply(count, n, k, {rows, a.stride, a.transposed}, b, {scratch.data(), n});
    for_rows(count, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* const from = scratch.data() + row * n;
        float* const to = c.values + (first + row) * c.stride;
        if (c.add) {
          for (int64_t i = 0; i < n; ++i) to[i] += from[i];
        } else {
          copy_past_cache(from, n, to);
        }
      }
    });
  }
}

template void multiply_past_cache(int64_t, int64_t, int64_t, const Factor<float>&,
                                  const Factor<float>&, const Product&, std::span<float>);
template void multiply_past_cache(int64_t, int64_t, int64_t, const Factor<BF16>&,
                                  const Factor<BF16>&, const Product&, std::span<float>);

void multiply_without_mkl(int64_t m, int64_t n, int64_t k, const Factor<float>& a,
                          const Factor<float>& b, const Product& c) {
  multiply_by_libtorch(m, n, k, a, b, c);
}

void multiply_without_mkl(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                          const Factor<BF16>& b, const Product& c) {
  multiply_by_libtorch(m, n, k, a, b, c);
}

}  // namespace farstep
