#include "trainer/model/host_mirror.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

HostMirror::HostMirror(at::Tensor tensor) : tensor_(std::move(tensor)) {
  FARSTEP_CHECK(tensor_.is_contiguous() && tensor_.scalar_type() == at::kFloat,
                "a mirror is of contiguous fp32");
}

std::span<float> HostMirror::host() {
  if (!host_.defined()) {
    host_ = tensor_.is_cpu() ? tensor_ : at::empty_like(tensor_, at::TensorOptions(at::kCPU));
  }
  return {host_.mutable_data_ptr<float>(), static_cast<std::size_t>(host_.numel())};
}

std::span<float> HostMirror::pull() {
  return pull(0, tensor_.numel());
}

void HostMirror::push() {
  FARSTEP_CHECK(host_.defined(), "nothing was pulled that could be pushed");
  push(0, host());
}

std::span<float> HostMirror::pull(int64_t begin, int64_t size) {
  FARSTEP_CHECK(0 <= begin && 0 <= size && begin + size <= tensor_.numel(),
                "elements {} to {} of {}", begin, begin + size, tensor_.numel());
  const auto values =
      host().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  if (!tensor_.is_cpu()) {
    host_.view(-1).narrow(0, begin, size).copy_(tensor_.view(-1).narrow(0, begin, size));
  }
  return values;
}

void HostMirror::push(int64_t begin, std::span<const float> values) {
  const auto size = std::ssize(values);
  FARSTEP_CHECK(0 <= begin && begin + size <= tensor_.numel(), "elements {} to {} of {}", begin,
                begin + size, tensor_.numel());
  if (tensor_.is_cpu()) {
    float* const own = tensor_.mutable_data_ptr<float>() + begin;
    if (values.data() != own) std::ranges::copy(values, own);
    return;
  }
  // Torch has no tensor of constant memory; it is only read.
  const auto source = at::from_blob(const_cast<float*>(values.data()), {size}, at::kFloat);
  tensor_.view(-1).narrow(0, begin, size).copy_(source);
}

}  // namespace farstep
