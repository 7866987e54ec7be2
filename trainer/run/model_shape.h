// The shape of a run's model at a site.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/config/site_config.h"
#include "trainer/model/llama_config.h"

namespace farstep {

// Where the site has the Hugging Face folder that the run's model starts from.
std::filesystem::path model_source(const SiteConfig& site, const RunConfig& run);

// The shape that the run's `model` describes, or that of the folder it starts from. Throws
// ConfigError naming `run_source` and the JSON path, or DataError naming a file of the folder.
LlamaConfig model_shape(const SiteConfig& site, const RunConfig& run,
                        const std::string& run_source);

}  // namespace farstep
