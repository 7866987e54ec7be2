// Opens a trained language model for commands other than `train`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/checkpoint/hf_folder.h"
#include "trainer/model/device_config.h"
#include "trainer/model/llama/llama.h"

namespace farstep {

// Opens the model of a checkpoint on `device`, which the calling thread uses. Throws DataError, or
// ConfigError if there is no such device.
std::unique_ptr<Llama> open_model(const HfFolder& folder, const DeviceConfig& device,
                                  ComputeType compute);

// Returns how many tokens at most the model was trained to read at once, if its config.json says.
std::optional<int64_t> trained_length(const HfFolder& folder);

}  // namespace farstep
