// Six ways to the same product. The own kernels divide it between the threads here; MKL and
// LibTorch divide it themselves.
#include "trainer/model/matmul/product_way.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "trainer/base/error.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/kernels/products/panel_product.h"
#include "trainer/model/parallel_rows.h"

// LibTorch exports these functions of its MKL without a header. Matrices are column-major. Weak,
// because a LibTorch without MKL lacks them.
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

// A row-major product equals the column-major product of the exchanged factors.
template <typename Gemm, typename T>
void multiply_by_gemm(const Gemm& gemm, int64_t m, int64_t n, int64_t k, const Factor<T>& a,
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
bool has_mkl() {
  return sizeof(T) == sizeof(float) ? sgemm_ != nullptr : gemm_bf16bf16f32_ != nullptr;
}

void multiply_by_mkl(int64_t m, int64_t n, int64_t k, const Factor<float>& a,
                     const Factor<float>& b, const Product& c) {
  multiply_by_gemm(sgemm_, m, n, k, a, b, c);
}
void multiply_by_mkl(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                     const Product& c) {
  multiply_by_gemm(gemm_bf16bf16f32_, m, n, k, a, b, c);
}

template <typename T>
at::Tensor fp32_tensor(const Factor<T>& factor, int64_t rows, int64_t columns) {
  constexpr auto kType = sizeof(T) == sizeof(float) ? at::kFloat : at::kBFloat16;
  const std::array<int64_t, 2> along{factor.stride, 1}, across{1, factor.stride};
  // LibTorch has no tensors of constant memory; the factor is only read.
  return at::from_blob(const_cast<T*>(factor.values), {rows, columns},
                       factor.transposed ? across : along, kType)
      .to(at::kFloat);
}

// The last resort, which every machine has: converts both factors to fp32 first.
template <typename T>
void multiply_by_libtorch(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                          const Product& c) {
  auto product = at::from_blob(c.values, {m, n}, {c.stride, 1}, at::kFloat);
  at::addmm_out(product, product, fp32_tensor(a, m, k), fp32_tensor(b, k, n),
                /*beta=*/c.add ? 1 : 0);
}

// Returns the rows of the factor from `first` on; in memory they are columns if it is transposed.
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

// One side of a product, divided into equal parts of whole panels.
struct Split {
  int64_t size = 0, panel = 0, parts = 0;

  int64_t panels() const { return (size + panel - 1) / panel; }
  int64_t begin(int64_t part) const { return std::min(size, panels() * part / parts * panel); }
};

// Divides a product between the threads.
template <typename T, typename P>
void multiply_by_panels(const PanelKernels<T, P>* kernels, int64_t m, int64_t n, int64_t k,
                        const Factor<T>& a, const Factor<T>& b, const Product& c) {
  // Each thread packs all of one factor and its part of the other. So the side whose panels stay in
  // the cache is divided first, as long as its parts have enough panels. No measurement chose the
  // number. With fewer panels in a part, packing counts for more; with more, some threads get no
  // part.
  constexpr int64_t kLeastPanels = 8;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  Split rows{m, kernels->rows}, columns{n, kernels->columns};
  Split& kept = a.transposed ? rows : columns;
  Split& other = a.transposed ? columns : rows;
  kept.parts = std::clamp<int64_t>(kept.panels() / kLeastPanels, 1, threads);
  other.parts = std::clamp<int64_t>(threads / kept.parts, 1, other.panels());
  for_rows(rows.parts * columns.parts, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t row_part = part / columns.parts, column_part = part % columns.parts;
      const int64_t row = rows.begin(row_part), column = columns.begin(column_part);
      const int64_t height = rows.begin(row_part + 1) - row;
      const int64_t width = columns.begin(column_part + 1) - column;
      if (height == 0 || width == 0) continue;
      multiply_panels(*kernels, height, width, k, rows_from(a, row), columns_from(b, column),
                      {c.values + row * c.stride + column, c.stride, c.add, c.past_cache});
    }
  });
}

}  // namespace

std::span<const std::string_view> enum_names(ProductWay) {
  static constexpr std::array<std::string_view, kProductWays> kNames{
      "amx", "avx512_bf16", "avx512", "avx2", "mkl", "libtorch"};
  return kNames;
}

std::string_view name_of(ProductWay way) {
  return enum_names(way)[static_cast<std::size_t>(way)];
}

// Needs both: code in this build, and instructions in this process.
template <typename T>
bool can_multiply_by(ProductWay way) {
  constexpr bool kIsBf16 = std::is_same_v<T, BF16>;
  switch (way) {
    case ProductWay::kAmx:
      return kIsBf16 && amx_panels() != nullptr && has_instructions(InstructionSet::kAmx);
    case ProductWay::kAvx512Bf16:
      return kIsBf16 && avx512_bf16_panels() != nullptr &&
             has_instructions(InstructionSet::kAvx512Bf16);
    case ProductWay::kAvx512:
      return avx512_panels<T>() != nullptr && has_instructions(InstructionSet::kAvx512);
    case ProductWay::kAvx2:
      return avx2_panels<T>() != nullptr && has_instructions(InstructionSet::kAvx2);
    case ProductWay::kMkl:
      return has_mkl<T>();
    case ProductWay::kLibTorch:
      return true;
  }
  throw InternalError("no such way of a product");
}

template <typename T>
void multiply_by(ProductWay way, int64_t m, int64_t n, int64_t k, const Factor<T>& a,
                 const Factor<T>& b, const Product& c) {
  if constexpr (std::is_same_v<T, BF16>) {
    if (way == ProductWay::kAmx) return multiply_by_panels(amx_panels(), m, n, k, a, b, c);
    if (way == ProductWay::kAvx512Bf16) {
      return multiply_by_panels(avx512_bf16_panels(), m, n, k, a, b, c);
    }
  }
  if (way == ProductWay::kAvx512) return multiply_by_panels(avx512_panels<T>(), m, n, k, a, b, c);
  if (way == ProductWay::kAvx2) return multiply_by_panels(avx2_panels<T>(), m, n, k, a, b, c);
  if (way == ProductWay::kMkl) return multiply_by_mkl(m, n, k, a, b, c);
  multiply_by_libtorch(m, n, k, a, b, c);
}

template bool can_multiply_by<float>(ProductWay);
template bool can_multiply_by<BF16>(ProductWay);
template void multiply_by(ProductWay, int64_t, int64_t, int64_t, const Factor<float>&,
                          const Factor<float>&, const Product&);
template void multiply_by(ProductWay, int64_t, int64_t, int64_t, const Factor<BF16>&,
                          const Factor<BF16>&, const Product&);

}  // namespace farstep
