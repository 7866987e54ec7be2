// What commands that use a trained language model ask: where it is, and what computes it.
#pragma once

#include <memory>
#include <string>

#include "trainer/base/error.h"
#include "trainer/config/fields.h"
#include "trainer/model/language/model_folder.h"
#include "trainer/tasks/trained_model.h"

namespace farstep {

struct ModelOptions {
  std::string model;
  DeviceKind device = DeviceKind::kCpu;
  int64_t index = 0, threads = 0;
  ComputeType compute = ComputeType::kAuto;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("model", model, "a site's folder, a checkpoint, or a Hugging Face folder",
          a_folder(kPositional));
    visit("device", device, "what computes");
    visit("index", index, "which of the GPUs", at_least(0));
    visit("threads", threads, "threads of the processor; 0 is one a core", in_range(0, 4096));
    visit("compute", compute,
          "type of matrix products: fp32, bf16, or auto: bf16 on a GPU and fp32 on a processor; "
          "fp8 is for training alone");
  }

  DeviceConfig device_config() const;
  // Throws ConfigError for fp8.
  ComputeType compute_type() const;
  // Opens the model, which computes in that type, and logs what a user is to know of it. `beside`
  // are the bytes that the command takes of the device besides. Throws ConfigError, also if a
  // processor has no memory for both, or DataError.
  std::unique_ptr<Llama> open(const LanguageFolder& folder, int64_t beside) const;
};

}  // namespace farstep
