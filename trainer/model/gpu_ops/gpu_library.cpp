// LibTorch's GPU functions are called by its dispatcher. So no symbol of libtorch_cuda is linked,
// and no second binary is needed for machines without CUDA.
#include "trainer/model/gpu_ops/gpu_library.h"

#include <ATen/SDPBackend.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>

#include "trainer/cuda/cuda_check.h"

namespace farstep {

namespace {

// LibTorch has no tensors of constant memory; constant memory is only read.
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

// Views of queries, keys and values, (B, T, heads, D) each, which are side by side in memory.
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

  // Returns views (B, heads, T, D), which cuDNN's attention and LibTorch's choice expect.
  Heads by_head() const {
    Heads turned = *this;
    for (auto* part : {&turned.queries, &turned.keys, &turned.values}) {
      *part = part->transpose(1, 2);
    }
    return turned;
  }
};

// Asks LibTorch, which knows the GPU, cuDNN's version and the limits of both in forward. In
// backward cuDNN does not support larger heads on every GPU.
bool prefers_cudnn(const Heads& by_head) {
  if (by_head.queries.size(3) > 128) return false;
  const auto choice =
      at::_fused_sdp_choice(by_head.queries, by_head.keys, by_head.values, /*attn_mask=*/{},
                            /*dropout_p=*/0, /*is_causal=*/true, /*scale=*/{}, /*enable_gqa=*/true);
  return choice == static_cast<int64_t>(at::SDPBackend::cudnn_attention);
}

AttentionResult attend_by_cudnn(const AttentionShape& shape, const Heads& by_head) {
  const auto results = at::_cudnn_attention_forward(
      by_head.queries, by_head.keys, by_head.values, /*attn_bias=*/{}, /*cum_seq_q=*/{},
      /*cum_seq_k=*/{}, /*max_q=*/shape.length, /*max_k=*/shape.length,
      /*compute_log_sumexp=*/true, /*dropout_p=*/0, /*is_causal=*/true);
  // The result (B, H, T, D) has the memory layout of the queries: a token's heads side by side.
  return {std::get<0>(results).transpose(1, 2).contiguous(), std::get<1>(results).contiguous(),
          /*by_cudnn=*/true};
}

AttentionResult attend_by_flash(const AttentionShape& shape, const Heads& heads) {
  const auto results = at::_flash_attention_forward(
      heads.queries, heads.keys, heads.values, /*cum_seq_q=*/{}, /*cum_seq_k=*/{},
      /*max_q=*/shape.length, /*max_k=*/shape.length, /*dropout_p=*/0, /*is_causal=*/true,
      /*return_debug_mask=*/false, /*scale=*/std::optional<double>());
  return {std::get<0>(results).contiguous(), std::get<1>(results).contiguous()};
}

}  // namespace

bool is_gpu(at::Device device) {
  return device.is_cuda();
}

void use_gpu(at::Device device) {
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

int64_t gpu_memory_bytes(at::Device device) {
  use_gpu(device);
  std::size_t free = 0, total = 0;
  FARSTEP_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total);
}

cudaStream_t current_stream(at::Device device) {
  return static_cast<cudaStream_t>(
      c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle());
}

// From LibTorch's pool, so that its allocator knows the stream.
SideStream::SideStream(at::Device device)
    : stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

SideStream::~SideStream() = default;  // the pool keeps it

cudaStream_t SideStream::get() const {
  return static_cast<cudaStream_t>(stream_.native_handle());
}

void SideStream::run(const std::function<void()>& work) const {
  const c10::StreamGuard guard(stream_);
  work();
}

void gpu_multiply(at::Device device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const GpuProduct& c) {
  auto product = product_tensor(c, m, n, device);
  const auto left = factor_tensor(a, m, k, device), right = factor_tensor(b, k, n, device);
  if (c.rounded != nullptr) {
    at::mm_out(product, left, right);
  } else if (c.add) {
    at::addmm_out(product, product, left, right, at::kFloat);
  } else {
    at::mm_out(product, left, right, at::kFloat);
  }
}

void gpu_multiply_fp8(at::Device device, int64_t m, int64_t n, int64_t k, const Fp8Factor& a,
                      const Fp8Factor& b, bool fast, const GpuProduct& c) {
  const auto scale = [&](const Fp8Factor& factor) {
    return tensor_of(factor.inverse_scale, {}, {}, at::kFloat, device);
  };
  auto product = product_tensor(c, m, n, device);
  // _scaled_mm cannot add to the present values.
  auto set = c.add ? at::empty_like(product) : product;
  at::_scaled_mm_out(set, fp8_tensor(a, m, k, device), fp8_tensor(b, n, k, device).t(), scale(a),
                     scale(b), /*bias=*/{}, /*scale_result=*/{}, /*out_dtype=*/set.scalar_type(),
                     fast);
  if (c.add) product.add_(set);
}

bool gpu_attends(int64_t head_size) {
  // The limits of FlashAttention, which every GPU since Ampere has.
  return head_size % 8 == 0 && head_size <= 256;
}

AttentionResult gpu_attend(at::Device device, const AttentionShape& shape, const BF16* heads) {
  const Heads parts(shape, heads, device);
  const auto by_head = parts.by_head();
  return prefers_cudnn(by_head) ? attend_by_cudnn(shape, by_head) : attend_by_flash(shape, parts);
}

AttentionGradients gpu_attend_backward(at::Device device, const AttentionShape& shape,
                                       const BF16* heads, const AttentionResult& result,
                                       const BF16* mixed_gradient) {
  const Heads parts(shape, heads, device);
  const int64_t size = shape.head_size, width = shape.mixed_width();
  const auto d_mixed = tensor_of(mixed_gradient, {shape.sequences, shape.length, shape.heads, size},
                                 {shape.length * width, width, size, 1}, at::kBFloat16, device);
  const auto mixed = result.mixed.view(d_mixed.sizes());
  // The state of a random generator, which is not read without dropout.
  const auto state_type = result.by_cudnn ? at::kLong : at::kUInt64;
  const auto no_state = at::empty({2}, at::TensorOptions(device).dtype(state_type));
  if (!result.by_cudnn) {
    const auto [queries, keys, values] = at::_flash_attention_backward(
        d_mixed, parts.queries, parts.keys, parts.values, mixed, result.log_sums,
        /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, /*max_q=*/shape.length, /*max_k=*/shape.length,
        /*dropout_p=*/0, /*is_causal=*/true, no_state, no_state);
    return {queries.contiguous(), keys.contiguous(), values.contiguous()};
  }
  const auto by_head = parts.by_head();
  const auto [queries, keys, values] = at::_cudnn_attention_backward(
      d_mixed.transpose(1, 2), by_head.queries, by_head.keys, by_head.values, mixed.transpose(1, 2),
      result.log_sums, no_state, no_state, /*attn_bias=*/{},
      /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, /*max_q=*/shape.length, /*max_k=*/shape.length,
      /*dropout_p=*/0, /*is_causal=*/true);
  const auto by_token = [](const at::Tensor& gradient) {
    return gradient.transpose(1, 2).contiguous();
  };
  return {by_token(queries), by_token(keys), by_token(values)};
}

}  // namespace farstep
