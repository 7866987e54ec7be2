// Convolutional image classifiers. Thread-safe.
#pragma once

#include "trainer/tasks/family.h"

namespace farstep {

class ImageFamily : public Family {
 public:
  // Size and classes of the images, and so the data, decide the shape.
  std::vector<ParameterSpec> layout(const SiteOfRun& at) const override;
  std::string check_data(const SiteOfRun& at) const override;
  std::unique_ptr<Task> make_task(const SiteOfRun& at) const override;
};

}  // namespace farstep
