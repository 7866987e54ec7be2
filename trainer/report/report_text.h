// The report as plain text, at most 100 columns wide. Pure functions; thread-safe.
#pragma once

#include <string>

#include "trainer/report/report.h"
#include "trainer/report/report_tables.h"

namespace farstep {

inline constexpr std::size_t kReportColumns = 100;

// The facts, then the tables of idle time, devices, work and traffic, the plan, and what was left
// out.
std::string report_text(const RunReport& report);

// The facts, the table of idle time and the plan.
std::string idle_text(const RunReport& report);

// The table with aligned columns. One that is wider than `columns` is split into blocks that each
// repeat the first column, as long as a block has room for another one.
std::string table_text(const Table& table, std::size_t columns);

}  // namespace farstep
