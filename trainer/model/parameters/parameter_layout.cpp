#include "trainer/model/parameters/parameter_layout.h"

#include <utility>

#include "trainer/base/error.h"

namespace farstep {

void LayoutBuilder::weight(std::string name, std::vector<int64_t> shape, double init_std) {
  add({.name = std::move(name),
       .shape = std::move(shape),
       .decays = true,
       .is_hidden_matrix = true,
       .init_std = init_std});
}

void LayoutBuilder::table(std::string name, std::vector<int64_t> shape, double init_std) {
  add({.name = std::move(name), .shape = std::move(shape), .decays = true, .init_std = init_std});
}

void LayoutBuilder::constant(std::string name, std::vector<int64_t> shape, double init_value) {
  add({.name = std::move(name), .shape = std::move(shape), .init_value = init_value});
}

void LayoutBuilder::add(ParameterSpec spec) {
  spec.offset = num_parameters(layout_);
  layout_.push_back(std::move(spec));
}

int64_t num_parameters(const std::vector<ParameterSpec>& layout) {
  return layout.empty() ? 0 : layout.back().end();
}

NamedBuffers named_parameters(const std::vector<ParameterSpec>& layout, std::span<float> flat) {
  FARSTEP_CHECK(static_cast<int64_t>(flat.size()) == num_parameters(layout),
                "{} values for {} parameters", flat.size(), num_parameters(layout));
  NamedBuffers buffers;
  for (const auto& spec : layout) {
    const auto values =
        flat.subspan(static_cast<std::size_t>(spec.offset), static_cast<std::size_t>(spec.size()));
    buffers.push_back({spec.name, DType::kF32, spec.shape, std::as_writable_bytes(values)});
  }
  return buffers;
}

}  // namespace farstep
