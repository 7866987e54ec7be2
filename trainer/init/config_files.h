// The config files of a planned run, and their way onto the disk.
#pragma once

#include <filesystem>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/init/init_plan.h"

namespace farstep {

struct ConfigFile {
  std::filesystem::path path;
  Json content;  // members that differ from their defaults, or that a user will want to edit
};

// Returns the run file and one config a site, in `folder`. Paths in them are relative to it, so
// that the folder can be copied. Throws ConfigError if a strict reader would refuse one.
std::vector<ConfigFile> config_files(const InitPlan& plan, const std::filesystem::path& folder);

// Writes the files, and with keys the key folder `keys` beside them. Files that exist are a
// ConfigError, unless `force`. Keys that exist stay as they are with `force`: they may be in use.
// Throws DataError if the disk fails.
void write_run_folder(const InitPlan& plan, const std::filesystem::path& folder, bool force);

}  // namespace farstep
