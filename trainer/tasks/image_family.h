// Convolutional image classifiers. Thread-safe.
#pragma once

#include "trainer/tasks/family.h"

namespace farstep {

class ImageFamily : public Family {
 public:
  // Size and classes of the images, and so the data, decide the shape. A site without images takes
  // the net from the facts that it has learned; it must have some.
  std::vector<ParameterSpec> layout(const SiteOfRun& at) const override;
  PassMemory pass_memory(const SiteOfRun& at, const DeviceConfig& device,
                         int64_t examples) const override;
  RunData check_data(const SiteOfRun& at) const override;
  // The net, with the statistics of the images.
  Json data_facts(const SiteOfRun& at) const override;
  std::unique_ptr<Task> make_task(const SiteOfRun& at) const override;
};

}  // namespace farstep
