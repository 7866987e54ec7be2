// A sync works on host memory. On a CPU the mirror is the tensor itself. On a GPU it is a copy, and
// a pull that is started early travels while training goes on.
#include "trainer/model/parameters/host_mirror.h"

#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Returns the first `size` elements of `buffer`, which it replaces by a larger one if necessary.
at::Tensor first_of(at::Tensor& buffer, int64_t size, const at::TensorOptions& options) {
  if (!buffer.defined() || buffer.numel() < size) {
    buffer.reset();  // before the new allocation, as both may not fit
    buffer = at::empty({size}, options.dtype(at::kFloat));
  }
  return buffer.narrow(0, 0, size);
}

std::span<float> span_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// The GPU copies from and to pinned memory by itself; other memory would make the host wait.
at::TensorOptions pinned() {
  return at::TensorOptions(at::kCPU).pinned_memory(true);
}

// In parallel: one core does not reach the memory's bandwidth, and training waits for a push.
void copy_values(std::span<const float> from, float* to) {
  // 1 MiB for each task: for less, starting threads costs more than they save.
  constexpr int64_t kGrainValues = 1 << 18;
  at::parallel_for(0, std::ssize(from), kGrainValues, [&](int64_t begin, int64_t end) {
    std::copy_n(from.data() + begin, end - begin, to + begin);
  });
}

}  // namespace

// Copies between a GPU and pinned memory. A pull first copies the values on the GPU, which takes
// microseconds of the training stream. They then travel on a stream of their own, while training
// may change them.
class HostMirror::Transfers {
 public:
  explicit Transfers(at::Device device)
      : guard_(device.type()),
        device_(device),
        side_(guard_.getStreamFromGlobalPool(device)),
        ready_(device.type()),
        down_(device.type()),
        up_(device.type()) {}
  // Copies under way use memory that is freed next.
  ~Transfers() {
    down_.synchronize();
    up_.synchronize();
  }

  void start_down(const at::Tensor& source, const at::Tensor& target) {
    const auto staged = first_of(staging_, source.numel(), at::TensorOptions(device_));
    // A copy on the GPU runs at its memory's bandwidth, far above PCIe's.
    staged.copy_(source);
    ready_.record(guard_.getStream(device_));
    ready_.block(side_);
    const c10::StreamGuard on_side(side_);
    target.copy_(staged, /*non_blocking=*/true);
    down_.record(side_);
  }
  void finish_down() { down_.synchronize(); }

  void up(std::span<const float> values, const at::Tensor& target) {
    up_.synchronize();  // the previous push must have left the pinned memory
    const auto sent = first_of(pushed_, std::ssize(values), pinned());
    copy_values(values, span_of(sent).data());
    target.copy_(sent, /*non_blocking=*/true);
    up_.record(guard_.getStream(device_));
  }

 private:
  c10::impl::VirtualGuardImpl guard_;
  at::Device device_;
  c10::Stream side_;
  c10::Event ready_, down_, up_;
  at::Tensor staging_;  // on the GPU
  at::Tensor pushed_;
};

HostMirror::HostMirror(at::Tensor tensor) : tensor_(std::move(tensor)) {
  FARSTEP_CHECK(tensor_.is_contiguous() && tensor_.scalar_type() == at::kFloat,
                "a mirror is of contiguous fp32");
  if (!tensor_.is_cpu()) transfers_ = std::make_unique<Transfers>(tensor_.device());
}

HostMirror::~HostMirror() = default;
HostMirror::HostMirror(HostMirror&&) noexcept = default;

void HostMirror::check_range(int64_t begin, int64_t size) const {
  FARSTEP_CHECK(0 <= begin && 0 <= size && begin + size <= tensor_.numel(),
                "elements {} to {} of {}", begin, begin + size, tensor_.numel());
}

std::span<float> HostMirror::host() {
  if (!host_.defined()) {
    host_ = tensor_.is_cpu() ? tensor_ : at::empty_like(tensor_, at::TensorOptions(at::kCPU));
  }
  return span_of(host_);
}

std::span<float> HostMirror::pull() {
  const auto values = host();
  if (!tensor_.is_cpu()) host_.copy_(tensor_);
  return values;
}

void HostMirror::push() {
  FARSTEP_CHECK(host_.defined(), "push() comes before any pull()");
  if (!tensor_.is_cpu()) {
    tensor_.copy_(host_);
    return;
  }
  tensor_.unsafeGetTensorImpl()->bump_version();  // as LibTorch's own operations do
}

std::span<float> HostMirror::pull(int64_t begin, int64_t size) {
  check_range(begin, size);
  if (tensor_.is_cpu())
    return host().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  start_pull(begin, size);
  return finish_pull();
}

void HostMirror::push(int64_t begin, std::span<const float> values) {
  const auto size = std::ssize(values);
  check_range(begin, size);
  if (!tensor_.is_cpu()) {
    transfers_->up(values, tensor_.view(-1).narrow(0, begin, size));
    return;
  }
  float* const own = tensor_.mutable_data_ptr<float>() + begin;
  if (values.data() != own) copy_values(values, own);
  tensor_.unsafeGetTensorImpl()->bump_version();  // as LibTorch's own operations do
}

void HostMirror::start_pull(int64_t begin, int64_t size) {
  check_range(begin, size);
  FARSTEP_CHECK(!started_, "a pull is under way");
  const auto source = tensor_.view(-1).narrow(0, begin, size);
  if (tensor_.is_cpu()) {
    first_of(pulled_, size, at::TensorOptions(at::kCPU)).copy_(source);
  } else {
    transfers_->start_down(source, first_of(pulled_, size, pinned()));
  }
  started_ = size;
}

std::span<float> HostMirror::finish_pull() {
  FARSTEP_CHECK(started_, "no pull was started");
  if (transfers_) transfers_->finish_down();
  return span_of(pulled_).first(static_cast<std::size_t>(*std::exchange(started_, std::nullopt)));
}

}  // namespace farstep
