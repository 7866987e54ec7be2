#include "trainer/model/gpu_library.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>

namespace farstep {

namespace {

// Torch has no tensor of constant memory; what is const is only read.
at::Tensor tensor_of(const void* memory, at::IntArrayRef sizes, at::IntArrayRef strides,
                     at::ScalarType type, at::Device device) {
  return at::for_blob(const_cast<void*>(memory), sizes)
      .strides(strides)
      .options(at::TensorOptions(device).dtype(type))
      .target_device(device)
      .make_tensor();
}

at::Tensor factor_tensor(const Factor<BF16>& factor, int64_t rows, int64_t columns,
                         at::Device device) {
  const std::array<int64_t, 2> along{factor.stride, 1}, across{1, factor.stride};
  return tensor_of(factor.values, {rows, columns}, factor.transposed ? across : along,
                   at::kBFloat16, device);
}

at::Tensor product_tensor(const GpuProduct& product, int64_t rows, int64_t columns,
                          at::Device device) {
  return product.rounded != nullptr
             ? tensor_of(product.rounded, {rows, columns}, {columns, 1}, at::kBFloat16, device)
             : tensor_of(product.exact, {rows, columns}, {columns, 1}, at::kFloat, device);
}

at::Tensor fp8_tensor(const Fp8Factor& factor, int64_t rows, int64_t columns, at::Device device) {
  const auto type = factor.format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
  return tensor_of(factor.codes, {rows, columns}, {columns, 1}, type, device);
}

// Queries, keys and values, (B, T, heads, D) each, where they lie side by side.
struct Heads {
  at::Tensor queries, keys, values;

  Heads(const AttentionShape& shape, const BF16* heads, at::Device device) {
    const auto part = [&](int64_t first, int64_t count) {
      const int64_t width = shape.width(), size = shape.head_size;
      return tensor_of(heads + first * size, {shape.sequences, shape.length, count, size},
                       {shape.length * width, width, size, 1}, at::kBFloat16, device);
    };
    queries = part(0, shape.heads);
    keys = part(shape.heads, shape.kv_heads);
    values = part(shape.heads + shape.kv_heads, shape.kv_heads);
  }
};

at::Tensor mixed_tensor(const AttentionShape& shape, const BF16* mixed, at::Device device) {
  const int64_t size = shape.head_size, width = shape.mixed_width();
  return tensor_of(mixed, {shape.sequences, shape.length, shape.heads, size},
                   {shape.length * width, width, size, 1}, at::kBFloat16, device);
}

at::Tensor log_sums_tensor(const AttentionShape& shape, const float* log_sums, at::Device device) {
  return tensor_of(log_sums, {shape.sequences, shape.heads, shape.length},
                   {shape.heads * shape.length, shape.length, 1}, at::kFloat, device);
}

}  // namespace

bool is_gpu(at::Device device) {
  return device.is_cuda();
}

void use_gpu(at::Device device) {
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

cudaStream_t current_stream(at::Device device) {
  return static_cast<cudaStream_t>(
      c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle());
}

void gpu_multiply(at::Device device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const Product& c) {
  auto product = tensor_of(c.values, {m, n}, {c.stride, 1}, at::kFloat, device);
  const auto left = factor_tensor(a, m, k, device), right = factor_tensor(b, k, n, device);
  if (c.add) {
    at::addmm_out(product, product, left, right, at::kFloat);
  } else {
    at::mm_out(product, left, right, at::kFloat);
  }
}

void gpu_multiply(at::Device device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const GpuProduct& c) {
  if (c.rounded == nullptr) return gpu_multiply(device, m, n, k, a, b, {c.exact, n, c.add});
  auto product = product_tensor(c, m, n, device);
  at::mm_out(product, factor_tensor(a, m, k, device), factor_tensor(b, k, n, device));
}

void gpu_multiply_fp8(at::Device device, int64_t m, int64_t n, int64_t k, const Fp8Factor& a,
                      const Fp8Factor& b, bool fast, const GpuProduct& c) {
  const auto scale = [&](const Fp8Factor& factor) {
    return tensor_of(factor.inverse_scale, {}, {}, at::kFloat, device);
  };
  auto product = product_tensor(c, m, n, device);
  // It only sets.
  auto set = c.add ? at::empty_like(product) : product;
  at::_scaled_mm_out(set, fp8_tensor(a, m, k, device), fp8_tensor(b, n, k, device).t(), scale(a),
                     scale(b), /*bias=*/{}, /*scale_result=*/{}, /*out_dtype=*/set.scalar_type(),
                     fast);
  if (c.add) product.add_(set);
}

bool gpu_attends(int64_t head_size) {
  return head_size % 8 == 0 && head_size <= 256;
}

void gpu_attend(at::Device device, const AttentionShape& shape, const BF16* heads, BF16* mixed,
                float* log_sums) {
  const Heads parts(shape, heads, device);
  const auto results = at::_flash_attention_forward(
      parts.queries, parts.keys, parts.values, /*cum_seq_q=*/{}, /*cum_seq_k=*/{},
      /*max_q=*/shape.length, /*max_k=*/shape.length, /*dropout_p=*/0, /*is_causal=*/true,
      /*return_debug_mask=*/false, /*scale=*/std::optional<double>());
  // It has no form that writes where it is told to.
  mixed_tensor(shape, mixed, device).copy_(std::get<0>(results));
  log_sums_tensor(shape, log_sums, device).copy_(std::get<1>(results));
}

AttentionGradients gpu_attend_backward(at::Device device, const AttentionShape& shape,
                                       const BF16* heads, const BF16* mixed, const float* log_sums,
                                       const BF16* mixed_gradient) {
  const Heads parts(shape, heads, device);
  // The state of a generator, which nothing reads without dropout.
  const auto no_state = at::empty({2}, at::TensorOptions(device).dtype(at::kUInt64));
  const auto [queries, keys, values] = at::_flash_attention_backward(
      mixed_tensor(shape, mixed_gradient, device), parts.queries, parts.keys, parts.values,
      mixed_tensor(shape, mixed, device), log_sums_tensor(shape, log_sums, device),
      /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, /*max_q=*/shape.length, /*max_k=*/shape.length,
      /*dropout_p=*/0, /*is_causal=*/true, no_state, no_state);
  return {queries.contiguous(), keys.contiguous(), values.contiguous()};
}

}  // namespace farstep
