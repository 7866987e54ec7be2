// One flat vector holds all parameters, and leaves are views into it. So a sync, a checkpoint and
// an optimizer pass over one piece of memory, and autograd writes where they read.
#include "trainer/model/parameters/parameters.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/model/parameters/normal_values.h"

namespace farstep {

namespace {

at::Tensor view_of(const at::Tensor& flat, const ParameterSpec& spec) {
  return flat.narrow(0, spec.offset, spec.size()).view(spec.shape);
}

}  // namespace

Parameters::Parameters(std::vector<ParameterSpec> layout, at::Device device)
    : layout_(std::move(layout)),
      values_(at::zeros({num_parameters(layout_)}, at::device(device).dtype(at::kFloat))),
      gradients_(at::zeros_like(values_)),
      host_values_(values_) {
  for (const auto& spec : layout_) {
    auto leaf = view_of(values_, spec).detach().set_requires_grad(true);
    // A gradient that is there already is added to in place: backward never replaces the view.
    leaf.mutable_grad() = view_of(gradients_, spec);
    leaves_[spec.name] = std::move(leaf);
  }
}

void Parameters::initialise(uint64_t seed) {
  const auto values = host_values_.pull();
  std::vector<NormalStretch> stretches;
  for (const auto& spec : layout_) stretches.push_back({spec.end(), spec.init_std});
  fill_normal(values, stretches, seed);
  for (const auto& spec : layout_) {
    if (spec.init_std != 0) continue;
    std::fill_n(values.data() + spec.offset, spec.size(), static_cast<float>(spec.init_value));
  }
  host_values_.push();
}

const at::Tensor& Parameters::bf16_values() {
  // The copy follows the values' version, because others than the optimizer change them: a sync, a
  // resume.
  if (!bf16_values_.defined() || bf16_version_ != values_._version()) {
    if (!bf16_values_.defined()) bf16_values_ = at::empty_like(values_, at::kBFloat16);
    bf16_values_.copy_(values_);
    bf16_version_ = values_._version();
  }
  return bf16_values_;
}

BF16* Parameters::bf16_copy() {
  return bf16_values_.defined() ? static_cast<BF16*>(bf16_values_.mutable_data_ptr()) : nullptr;
}

void Parameters::note_update() {
  values_.unsafeGetTensorImpl()->bump_version();
  // The optimizer has written the copy together with the values.
  bf16_version_ = values_._version();
}

const at::Tensor& Parameters::leaf(const std::string& name) const {
  const auto found = leaves_.find(name);
  FARSTEP_CHECK(found != leaves_.end(), "no parameter is called '{}'", name);
  return found->second;
}

}  // namespace farstep
