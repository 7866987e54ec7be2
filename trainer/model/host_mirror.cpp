#include "trainer/model/host_mirror.h"

#include "trainer/base/error.h"

namespace farstep {

HostMirror::HostMirror(at::Tensor tensor) : tensor_(std::move(tensor)) {
  FARSTEP_CHECK(tensor_.is_contiguous() && tensor_.scalar_type() == at::kFloat,
                "a mirror is of contiguous fp32");
}

std::span<float> HostMirror::pull() {
  if (tensor_.is_cpu()) {
    host_ = tensor_;
  } else if (host_.defined()) {
    host_.copy_(tensor_);
  } else {
    host_ = tensor_.to(at::kCPU);
  }
  return {host_.mutable_data_ptr<float>(), static_cast<std::size_t>(host_.numel())};
}

void HostMirror::push() {
  FARSTEP_CHECK(host_.defined(), "nothing was pulled that could be pushed");
  if (!tensor_.is_cpu()) tensor_.copy_(host_);
}

}  // namespace farstep
