#include "trainer/model/parameters.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/model/normal_values.h"

namespace farstep {

namespace {

at::Tensor view_of(const at::Tensor& flat, const ParameterSpec& spec) {
  return flat.narrow(0, spec.offset, spec.size()).view(spec.shape);
}

}  // namespace

Parameters::Parameters(const LlamaConfig& config, at::Device device)
    : init_std_(config.init_std),
      layout_(parameter_layout(config)),
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
  fill_normal(values, init_std_, seed);
  for (const auto& spec : layout_) {
    if (!spec.decays) std::fill_n(values.data() + spec.offset, spec.size(), 1.0F);
  }
  host_values_.push();
}

const at::Tensor& Parameters::leaf(const std::string& name) const {
  const auto found = leaves_.find(name);
  FARSTEP_CHECK(found != leaves_.end(), "no parameter is called '{}'", name);
  return found->second;
}

}  // namespace farstep
