// The norm is summed in fp64 in fixed chunks, so that it has the same bits for any number of
// threads.
#include "trainer/inner/optimizer/gradient_norm.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/kernels/adamw.h"

namespace farstep {

namespace {

// Values of one partial sum: 128 KiB, which fit in a core's second-level cache. The size is fixed,
// so the norm's bits do not depend on the number of threads.
constexpr int64_t kChunkValues = 1 << 15;

// LibTorch's own norm sums in fp32 on a CPU, which loses digits in a long vector.
double squares_on_cpu(const at::Tensor& gradients) {
  const auto* values = gradients.const_data_ptr<float>();
  const int64_t size = gradients.numel();
  const int64_t chunks = (size + kChunkValues - 1) / kChunkValues;
  std::vector<double> sums(static_cast<std::size_t>(chunks));
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t last = std::min(size, (chunk + 1) * kChunkValues);
      const int64_t first = chunk * kChunkValues;
      sums[static_cast<std::size_t>(chunk)] = sum_of_squares(values + first, last - first);
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

double gradient_norm(const at::Tensor& gradients) {
  return std::sqrt(squared_norm(gradients));
}

double squared_norm(const at::Tensor& gradients) {
  FARSTEP_CHECK(
      gradients.dim() == 1 && gradients.is_contiguous() && gradients.scalar_type() == at::kFloat,
      "gradients are one flat fp32 tensor");
  if (gradients.is_cpu()) return squares_on_cpu(gradients);
  const auto norm = at::linalg_vector_norm(gradients).item<double>();
  return norm * norm;
}

double clip_factor(double norm, const std::optional<double>& clip_norm) {
  // 1e-6 as torch.nn.utils.clip_grad_norm_ has it, so that runs can be compared.
  return clip_norm ? std::min(1.0, *clip_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace farstep
