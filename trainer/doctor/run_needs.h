// What a run needs of a site's memory and disk, by the model's size and the run's settings.
// ARCHITECTURE.md's table of the memory of a site has the terms. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"

namespace farstep {

struct RunNeeds {
  int64_t host_bytes = 0;        // of the machine's memory, without activations
  int64_t first_gpu_bytes = 0;   // of a site's first device, if it is a GPU: also AdamW's moments
  int64_t other_gpu_bytes = 0;   // of each other GPU
  int64_t checkpoint_bytes = 0;  // of one checkpoint
};

// Returns the needs of a model with `num_parameters` at the site.
RunNeeds run_needs(int64_t num_parameters, const RunConfig& run, const SiteConfig& site);

// Returns how many checkpoints a site keeps. With inner.schedule wsd it keeps the one before the
// decay besides the newest.
int64_t kept_checkpoints(const RunConfig& run);

}  // namespace farstep
