// The page that compares runs: their curves in the same charts, and a table of their figures.
// Pure functions; thread-safe.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "trainer/report/idle_table.h"

namespace farstep {

// Returns a name for each run: its own, and where others have the same, with as much of the end of
// its folder as tells it apart. The folders are normal absolute paths, all different.
std::vector<std::string> names_of_runs(std::span<const RunReport> reports,
                                       std::span<const std::filesystem::path> folders);

// Returns a row for each run: sites, rounds, tokens, speed, idle time, losses, bytes. `names` has a
// name for each.
Table comparison_table(std::span<const RunReport> reports, std::span<const std::string> names);

// Returns a row for each setting of the runs that is not the same in all of them, with its values;
// "-" where the records of a run do not have it.
Table difference_table(std::span<const RunReport> reports, std::span<const std::string> names);

// Returns a page with the curves and the tables of at least one run, which needs nothing else.
std::string comparison_page(std::span<const RunReport> reports, std::span<const std::string> names);

}  // namespace farstep
