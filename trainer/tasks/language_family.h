// Language models on tokens. Thread-safe.
#pragma once

#include "trainer/tasks/family.h"

namespace farstep {

class LanguageFamily : public Family {
 public:
  std::vector<ParameterSpec> layout(const SiteOfRun& at) const override;
  PassMemory pass_memory(const SiteOfRun& at, const DeviceConfig& device,
                         int64_t examples) const override;
  RunData check_data(const SiteOfRun& at) const override;
  // The token that ends a document.
  Json data_facts(const SiteOfRun& at) const override;
  std::unique_ptr<Task> make_task(const SiteOfRun& at) const override;
};

}  // namespace farstep
