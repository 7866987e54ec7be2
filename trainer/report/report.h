// Builds the report of a run from its sites' event files, and prints it for programs.
//
// build_report() reads files; the other functions are pure. Thread-safe.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

// Reads RUN_FOLDER/*/events.jsonl, or events.jsonl in the folder of one site. Throws DataError if
// there is none, or none that can be read. A site whose file is no event file, or of another run
// than the newest record, is in no figure: `unreadable` and the notes name it.
RunReport build_report(const std::filesystem::path& run_folder);

// Returns the changes of how the sites sync, in order. They are the first site's, as all sites
// decide alike.
const std::vector<SyncChangeEvent>& sync_changes(const RunReport& report);

// Returns each file's site, path and reason.
Json unreadable_json(std::span<const UnreadableFile> files);

// Returns the output of `farstep report --json`; seconds are totals over the run.
Json report_json(const RunReport& report);

}  // namespace farstep
