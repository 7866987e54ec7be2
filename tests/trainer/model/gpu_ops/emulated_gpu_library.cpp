// Products and attention of a GPU that the CPU emulates, in place of gpu_library.cpp. Like kernels
// they are the GPU's work, and tell what they read and write.
#include <ATen/Parallel.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/trainer/model/gpu_ops/tested_gpu.h"
#include "trainer/base/error.h"
#include "trainer/cuda/cuda_check.h"
#include "trainer/kernels/numbers/convert.h"
#include "trainer/model/cpu_ops/cpu_attention.h"
#include "trainer/model/fused/arena.h"
#include "trainer/model/gpu_ops/gpu_library.h"
#include "trainer/model/gpu_ops/gpu_products.h"
#include "trainer/model/matmul/matrix_product.h"

namespace farstep {

namespace {

cudaStream_t stream_of_thread = nullptr;

template <typename T>
void tell_factor(const Factor<T>& factor, int64_t rows, int64_t columns) {
  if (factor.transposed) std::swap(rows, columns);
  for (int64_t row = 0; row < rows; ++row) {
    tell_read(factor.values + row * factor.stride, static_cast<std::size_t>(columns) * sizeof(T));
  }
}
void tell_codes(const Fp8Factor& factor, int64_t size) {
  tell_read(factor.codes, static_cast<std::size_t>(size));
  tell_read(factor.inverse_scale, sizeof(float));
}
void tell_product(const GpuProduct& product, int64_t size) {
  const auto values = static_cast<std::size_t>(size);
  if (product.rounded != nullptr) return tell_written(product.rounded, values * sizeof(BF16));
  if (product.add) tell_read(product.exact, values * sizeof(float));
  tell_written(product.exact, values * sizeof(float));
}
void tell_tensor(const at::Tensor& tensor, bool writes) {
  const auto tell = writes ? tell_written : tell_read;
  tell(tensor.const_data_ptr(), tensor.nbytes());
}

void give(const std::function<void()>& work) {
  FARSTEP_CUDA_CHECK(emulate_work(work, stream_of_thread));
}

AttentionScratch<BF16> scratch_for(Arena& arena, const AttentionShape& shape) {
  return arena.cut([&](ArenaCutter& cutter) {
    return cut_attention_scratch<BF16>(cutter, shape, at::get_num_threads(), chosen_attention());
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

int64_t gpu_memory_bytes(at::Device) {
  std::size_t free = 0, total = 0;
  FARSTEP_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total);
}

cudaStream_t current_stream(at::Device) {
  return stream_of_thread;
}

namespace {

// LibTorch has no streams of a CPU: the stream's number says which it is.
at::Stream new_stream(at::Device device) {
  cudaStream_t stream = nullptr;
  FARSTEP_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return at::Stream(at::Stream::UNSAFE, device,
                    static_cast<int64_t>(reinterpret_cast<uintptr_t>(stream)));
}

void multiply_now(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                  const GpuProduct& c) {
  if (c.rounded == nullptr) return multiply(m, n, k, a, b, {c.exact, n, c.add});
  std::vector<float> product(static_cast<std::size_t>(m * n));
  multiply(m, n, k, a, b, {product.data(), n});
  round_rows(product.data(), n, m, n, c.rounded, n);
}

}  // namespace

SideStream::SideStream(at::Device device) : stream_(new_stream(device)) {}
SideStream::~SideStream() {
  cudaStreamDestroy(get());
}

cudaStream_t SideStream::get() const {
  return reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(stream_.id()));
}

void SideStream::run(const std::function<void()>& work) const {
  struct Return {
    cudaStream_t before;
    ~Return() { stream_of_thread = before; }
  };
  const Return at_end{std::exchange(stream_of_thread, get())};
  work();
}

void GpuProducts::multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                           const Factor<BF16>& b, const GpuProduct& c) {
  give([=] {
    tell_factor(a, m, k);
    tell_factor(b, k, n);
    tell_product(c, m * n);
    multiply_now(m, n, k, a, b, c);
  });
}

void GpuProducts::multiply_fp8(int64_t m, int64_t n, int64_t k, const Fp8Factor& a,
                               const Fp8Factor& b, bool, const GpuProduct& c) {
  FARSTEP_CHECK(n % 16 == 0 && k % 16 == 0, "{} and {} are no sides for FP8", n, k);
  FARSTEP_CHECK(a.format == Fp8Format::kE4M3 || b.format == Fp8Format::kE4M3, "both are E5M2");
  give([=] {
    tell_codes(a, m * k);
    tell_codes(b, n * k);
    tell_product(c, m * n);
    const auto left = values_of(a, m * k), right = values_of(b, n * k);
    multiply_now(m, n, k, {left.data(), k}, {right.data(), k, true}, c);
  });
}

AttentionResult gpu_attend(at::Device device, const AttentionShape& shape, const BF16* heads) {
  const at::TensorOptions on_device(device);
  AttentionResult result{
      at::empty({shape.rows(), shape.mixed_width()}, on_device.dtype(at::kBFloat16)),
      at::empty({shape.sequences, shape.heads, shape.length}, on_device.dtype(at::kFloat))};
  give([=] {
    tell_read(heads, static_cast<std::size_t>(shape.rows() * shape.width()) * sizeof(BF16));
    tell_tensor(result.mixed, /*writes=*/true);
    tell_tensor(result.log_sums, /*writes=*/true);
    Arena arena(device);
    attend(shape, heads, scratch_for(arena, shape),
           static_cast<BF16*>(result.mixed.mutable_data_ptr()),
           result.log_sums.mutable_data_ptr<float>());
  });
  return result;
}

AttentionGradients gpu_attend_backward(at::Device device, const AttentionShape& shape,
                                       const BF16* heads, const AttentionResult& result,
                                       const BF16* mixed_gradient) {
  const auto empty = [&](int64_t count) {
    return at::empty({shape.rows(), count, shape.head_size},
                     at::TensorOptions(device).dtype(at::kBFloat16));
  };
  AttentionGradients gradients{empty(shape.heads), empty(shape.kv_heads), empty(shape.kv_heads)};
  give([=] {
    const auto rows = static_cast<std::size_t>(shape.rows());
    tell_read(heads, rows * static_cast<std::size_t>(shape.width()) * sizeof(BF16));
    tell_read(mixed_gradient, rows * static_cast<std::size_t>(shape.mixed_width()) * sizeof(BF16));
    tell_tensor(result.mixed, /*writes=*/false);
    tell_tensor(result.log_sums, /*writes=*/false);
    Arena arena(device);
    auto gradient = at::empty({shape.rows(), shape.width()}, at::kFloat);
    attend_backward<BF16>(shape,
                          {heads, static_cast<const BF16*>(result.mixed.const_data_ptr()),
                           result.log_sums.const_data_ptr<float>()},
                          mixed_gradient, scratch_for(arena, shape),
                          gradient.mutable_data_ptr<float>());
    int64_t first = 0;
    for (const auto* part : {&gradients.queries, &gradients.keys, &gradients.values}) {
      const int64_t width = part->size(1) * part->size(2);
      tell_tensor(*part, /*writes=*/true);
      part->copy_(gradient.narrow(1, first, width).view(part->sizes()));
      first += width;
    }
  });
  return gradients;
}

}  // namespace farstep
