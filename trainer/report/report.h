// Builds the report of a run from its sites' event files, and prints it for programs.
//
// build_report() reads files; the other functions are pure. Thread-safe.
#pragma once

#include <filesystem>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

// Reads RUN_FOLDER/*/events.jsonl, or events.jsonl in the folder of one site. Throws DataError if
// there is none, if a file is not an event file, or if files belong to different runs.
RunReport build_report(const std::filesystem::path& run_folder);

// Returns the changes of how the sites sync, in order. They are the first site's, as all sites
// decide alike.
const std::vector<SyncChangeEvent>& sync_changes(const RunReport& report);

// Returns the output of `farstep report --json`; seconds are totals over the run.
Json report_json(const RunReport& report);

}  // namespace farstep
