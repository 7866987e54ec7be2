// One case of a golden file that a script of scripts/ has written with PyTorch: tensors CASE/NAME,
// and JSON texts CASE/KEY in the metadata.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "tests/support/source_folder.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/json_fields.h"

namespace farstep {

class GoldenCase {
 public:
  GoldenCase(const std::string& file, const std::string& name)
      : file_(source_folder() / "tests/golden" / file), name_(name) {}

  const std::string& name() const { return name_; }
  Json json(const std::string& key) const {
    return Json::parse(file_.metadata().at(name_ + "/" + key));
  }
  const SafetensorsEntry& entry(const std::string& tensor) const {
    return file_.at(name_ + "/" + tensor);
  }
  at::Tensor values(const std::string& tensor) const {
    const auto& found = entry(tensor);
    auto values = at::empty(found.shape, at::kFloat);
    file_.copy_as_f32(found.name,
                      {values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
    return values;
  }

 private:
  SafetensorsFile file_;
  std::string name_;
};

}  // namespace farstep
