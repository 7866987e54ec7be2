#include "trainer/data/example_form.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "trainer/base/error.h"

namespace farstep {

std::size_t ExampleForm::Part::row_bytes() const {
  return static_cast<std::size_t>(num_elements(shape)) * size_of(dtype);
}

std::size_t ExampleForm::example_bytes() const {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.row_bytes();
  return bytes;
}

BatchView view_of(const ExampleForm& form, int64_t examples,
                  std::span<const std::span<const std::byte>> memory) {
  FARSTEP_CHECK(memory.size() == form.parts.size(), "{} parts of {}: {} are given",
                form.parts.size(), form.text, memory.size());
  BatchView view{
      .examples = examples, .targets = examples * form.targets, .parts = {}, .text = form.text};
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const auto& part = form.parts[i];
    FARSTEP_CHECK(memory[i].size() == static_cast<std::size_t>(examples) * part.row_bytes(),
                  "part {} of {} {} has {} bytes", i, examples, form.text, memory[i].size());
    view.parts.push_back({part.dtype, part.shape, memory[i]});
  }
  return view;
}

BlankBatch blank_batch(const ExampleForm& form, int64_t examples) {
  auto memory = std::make_shared<std::vector<std::vector<std::byte>>>();
  for (const auto& part : form.parts) {
    memory->emplace_back(static_cast<std::size_t>(examples) * part.row_bytes());
  }
  BlankBatch blank;
  std::vector<std::span<const std::byte>> read;
  for (auto& part : *memory) {
    blank.parts.emplace_back(part);
    read.emplace_back(part);
  }
  blank.batch = {.view = view_of(form, examples, read), .memory = memory};
  return blank;
}

std::optional<std::string> unfit_value(const ExampleForm& form, const BatchView& batch) {
  for (std::size_t i = 0; i < form.parts.size(); ++i) {
    const auto& part = form.parts[i];
    if (part.dtype != DType::kI64 || part.num_values == 0) continue;
    const auto bytes = batch.parts.at(i).bytes;
    for (std::size_t at = 0; at + sizeof(int64_t) <= bytes.size(); at += sizeof(int64_t)) {
      int64_t value = 0;
      std::memcpy(&value, bytes.data() + at, sizeof(value));
      if (value >= 0 && value < part.num_values) continue;
      return fmt::format("{} have a value of {}, where there are {}", form.text, value,
                         part.num_values);
    }
  }
  return std::nullopt;
}

}  // namespace farstep
