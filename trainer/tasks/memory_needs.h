// What a run takes of a site's memory and disk: the one place that `farstep check`, `doctor`,
// `train` and `profile` ask. ARCHITECTURE.md's table of the memory of a site has the terms.
//
// Pure functions of the site, its run and the model; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/memory_use.h"
#include "heterogeneity/knowledge/site_profile.h"
#include "heterogeneity/policy/plan.h"
#include "trainer/tasks/family.h"

namespace farstep {

struct MemoryNeeds {
  heterogeneity::MemoryUse host;                              // of the machine's memory
  std::vector<std::optional<heterogeneity::MemoryUse>> gpus;  // by device; nullopt of a cpu slice
  int64_t disk_bytes = 0;                                     // of one checkpoint
};

// Returns the needs of a model of that layout, with micro-batches of so many examples. A site that
// serves alone has none.
MemoryNeeds memory_needs(const SiteOfRun& at, const std::vector<ParameterSpec>& layout,
                         int64_t micro_batch);

// Whether the memory of this machine suffices.
struct MemoryRoom {
  std::string text;
  bool is_tight = false;
  Json figures;  // of the text
};

// Compares the needs with the bytes that are free; nullopt: the system does not say. A GPU's are
// told alone. Throws ConfigError, with the largest micro-batch that fits, if they are more.
MemoryRoom require_memory(const SiteOfRun& at, const std::vector<ParameterSpec>& layout,
                          int64_t micro_batch, std::optional<int64_t> free_bytes);

// Returns the work of the site's first round where nothing but its profile is known of its speed:
// the least that its policy gives it. Nothing of it is predicted. Throws ConfigError naming
// `at.run_source` and the JSON path if that is impossible.
heterogeneity::SitePlan first_work(const SiteOfRun& at,
                                   const std::optional<heterogeneity::SiteProfile>& profile);

// Returns how many checkpoints a site keeps. Besides the newest it keeps the one before the decay
// of inner.schedule wsd, and the one to which evaluate.on_rise goes back.
int64_t kept_checkpoints(const RunConfig& run);

}  // namespace farstep
