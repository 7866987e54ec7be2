// Products and attention of a GPU that the CPU plays, in place of gpu_library.cpp.
#include <ATen/Parallel.h>

#include <vector>

#include "tests/trainer/model/tested_gpu.h"
#include "trainer/kernels/convert.h"
#include "trainer/model/arena.h"
#include "trainer/model/cpu_attention.h"
#include "trainer/model/gpu_library.h"
#include "trainer/model/matrix_product.h"

namespace farstep {

namespace {

AttentionScratch<BF16> scratch_for(Arena& arena, const AttentionShape& shape) {
  return arena.cut([&](ArenaCutter& cutter) {
    const int64_t tiles = at::get_num_threads() * tile_rows(shape);
    AttentionScratch<BF16> scratch;
    cutter.cut(scratch.scores, tiles * shape.length);
    cutter.cut(scratch.gradient, tiles * shape.length);
    cutter.cut(scratch.probabilities, tiles * shape.length);
    cutter.cut(scratch.d_scores, tiles * shape.length);
    cutter.cut(scratch.mixed, tiles * shape.head_size);
    return scratch;
  });
}

}  // namespace

std::optional<at::Device> tested_gpu() {
  return at::kCPU;
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
                  const Factor<BF16>& b, BF16* c) {
  std::vector<float> product(static_cast<std::size_t>(m * n));
  multiply(m, n, k, a, b, {product.data(), n});
  round_rows(product.data(), n, m, n, c, n);
}

void gpu_attend(at::Device device, const AttentionShape& shape, const BF16* heads, BF16* mixed,
                float* log_sums) {
  Arena arena(device);
  attend(shape, heads, scratch_for(arena, shape), mixed, log_sums);
}

AttentionGradients gpu_attend_backward(at::Device device, const AttentionShape& shape,
                                       const BF16* heads, const BF16*, const float* log_sums,
                                       const BF16* mixed_gradient) {
  Arena arena(device);
  auto gradient = at::empty({shape.rows(), shape.width()}, at::kFloat);
  attend_backward(shape, heads, log_sums, mixed_gradient, scratch_for(arena, shape),
                  gradient.mutable_data_ptr<float>());
  const int64_t queries = shape.mixed_width(), keys = shape.kv_heads * shape.head_size;
  const auto part = [&](int64_t first, int64_t width) {
    return gradient.narrow(1, first, width).contiguous().to(at::kBFloat16);
  };
  return {part(0, queries), part(queries, keys), part(queries + keys, keys)};
}

}  // namespace farstep
