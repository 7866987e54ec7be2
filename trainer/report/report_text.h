// The report as plain text, at most 100 columns wide. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/report/report.h"
#include "trainer/report/report_tables.h"

namespace farstep {

inline constexpr std::size_t kReportColumns = 100;

// Returns the facts, the tables of idle time, devices, work, traffic and links, the plan, and notes
// on missing data.
std::string report_text(const RunReport& report);

// Returns the title and below it the lines, broken at kReportColumns; no lines: nothing.
std::string titled_text(const std::string& title, const std::vector<std::string>& lines);

// Returns the facts, the table of idle time and the plan.
std::string idle_text(const RunReport& report);

// Returns the table with aligned columns. A table wider than `columns` is split into blocks; each
// repeats the first column and has at least one other.
std::string table_text(const Table& table, std::size_t columns);

}  // namespace farstep
