// Finds the shape of a run's model at a site.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/model/shape/llama_config.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"

namespace farstep {

// Returns the site's path of the Hugging Face folder that the run's model starts from.
std::filesystem::path model_source(const SiteConfig& site, const RunConfig& run);

// Returns the shape of the run's `model`, or of the folder that the model starts from, having
// checked the folder's tensors. Throws ConfigError naming `run_source` and the JSON path, or
// DataError naming a file of the folder.
LlamaConfig model_shape(const SiteConfig& site, const RunConfig& run,
                        const std::string& run_source);

}  // namespace farstep
