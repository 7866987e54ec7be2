// Products and attention of a GPU that the CPU plays, in place of gpu_library.cpp.
#include <ATen/Parallel.h>

#include <vector>

#include "tests/trainer/model/tested_gpu.h"
#include "trainer/base/error.h"
#include "trainer/kernels/convert.h"
#include "trainer/model/arena.h"
#include "trainer/model/cpu_attention.h"
#include "trainer/model/gpu_library.h"
#include "trainer/model/matrix_product.h"

namespace farstep {

namespace {

AttentionScratch<BF16> scratch_for(Arena& arena, const AttentionShape& shape) {
  return arena.cut([&](ArenaCutter& cutter) {
    return cut_attention_scratch<BF16>(cutter, shape, at::get_num_threads(),
                                       attends_by_amx<BF16>());
  });
}

std::vector<BF16> values_of(const Fp8Factor& factor, int64_t size) {
  std::vector<BF16> values;
  for (int64_t i = 0; i < size; ++i) {
    const auto code = factor.codes[i];
    const float value = factor.format == Fp8Format::kE4M3 ? fp8_value<Fp8Format::kE4M3>(code)
                                                          : fp8_value<Fp8Format::kE5M2>(code);
    values.push_back(rounded<BF16>(value * *factor.inverse_scale));
  }
  return values;
}

}  // namespace

std::optional<at::Device> tested_gpu() {
  return at::kCPU;
}

std::optional<at::Device> tested_fp8_gpu() {
  return at::kCPU;
}

bool is_gpu(at::Device) {
  return true;
}

void use_gpu(at::Device) {}

cudaStream_t current_stream(at::Device) {
  return nullptr;
}

void gpu_multiply(at::Device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const Product& c) {
  multiply(m, n, k, a, b, c);
}

void gpu_multiply(at::Device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const GpuProduct& c) {
  if (c.rounded == nullptr) return multiply(m, n, k, a, b, {c.exact, n, c.add});
  std::vector<float> product(static_cast<std::size_t>(m * n));
  multiply(m, n, k, a, b, {product.data(), n});
  round_rows(product.data(), n, m, n, c.rounded, n);
}

void gpu_multiply_fp8(at::Device device, int64_t m, int64_t n, int64_t k, const Fp8Factor& a,
                      const Fp8Factor& b, bool, const GpuProduct& c) {
  FARSTEP_CHECK(n % 16 == 0 && k % 16 == 0, "{} and {} are no sides for FP8", n, k);
  FARSTEP_CHECK(a.format == Fp8Format::kE4M3 || b.format == Fp8Format::kE4M3, "both are E5M2");
  const auto left = values_of(a, m * k), right = values_of(b, n * k);
  gpu_multiply(device, m, n, k, {left.data(), k}, {right.data(), k, true}, c);
}

void gpu_attend(at::Device device, const AttentionShape& shape, const BF16* heads, BF16* mixed,
                float* log_sums) {
  Arena arena(device);
  attend(shape, heads, scratch_for(arena, shape), mixed, log_sums);
}

AttentionGradients gpu_attend_backward(at::Device device, const AttentionShape& shape,
                                       const BF16* heads, const BF16* mixed, const float* log_sums,
                                       const BF16* mixed_gradient) {
  Arena arena(device);
  auto gradient = at::empty({shape.rows(), shape.width()}, at::kFloat);
  attend_backward<BF16>(shape, {heads, mixed, log_sums}, mixed_gradient, scratch_for(arena, shape),
                        gradient.mutable_data_ptr<float>());
  const int64_t queries = shape.mixed_width(), keys = shape.kv_heads * shape.head_size;
  const auto part = [&](int64_t first, int64_t width) {
    return gradient.narrow(1, first, width).contiguous().to(at::kBFloat16);
  };
  return {part(0, queries), part(queries, keys), part(queries + keys, keys)};
}

}  // namespace farstep
