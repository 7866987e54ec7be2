// A batch is bytes until here. From here on it is tensors, and only the model knows what they mean.
#include "trainer/model/batch_tensors.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF16:
      return at::kHalf;
    case DType::kI64:
      return at::kLong;
  }
  throw InternalError("no tensor has such elements");
}

std::vector<at::Tensor> batch_tensors(const BatchView& batch, int64_t first, int64_t count,
                                      at::Device device) {
  FARSTEP_CHECK(first >= 0 && count > 0 && first + count <= batch.examples,
                "examples {} to {} of {}", first, first + count, batch.examples);
  std::vector<at::Tensor> tensors;
  for (const auto& part : batch.parts) {
    const auto row = static_cast<std::size_t>(num_elements(part.shape)) * size_of(part.dtype);
    FARSTEP_CHECK(part.bytes.size() == static_cast<std::size_t>(batch.examples) * row,
                  "{} bytes for {} examples of {}", part.bytes.size(), batch.examples, row);
    std::vector<int64_t> shape{count};
    shape.insert(shape.end(), part.shape.begin(), part.shape.end());
    // From pinned memory the GPU copies while the host goes on; LibTorch keeps it until then.
    const bool to_gpu = device.is_cuda();
    auto tensor =
        at::empty(shape, at::TensorOptions(scalar_type(part.dtype)).pinned_memory(to_gpu));
    const auto rows = part.bytes.subspan(static_cast<std::size_t>(first) * row,
                                         static_cast<std::size_t>(count) * row);
    std::ranges::copy(rows, static_cast<std::byte*>(tensor.mutable_data_ptr()));
    tensors.push_back(tensor.to(at::TensorOptions(device), /*non_blocking=*/to_gpu));
  }
  return tensors;
}

}  // namespace farstep
