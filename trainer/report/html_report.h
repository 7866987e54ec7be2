// The report as one self-contained HTML page, without scripts or network access, in a light and a
// dark style; and parts of it for other pages. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainer/report/idle_table.h"
#include "trainer/report/report.h"

namespace farstep {

// Returns the page; under a megabyte for a run of any length.
std::string html_report(const RunReport& report);

// Returns the begin of a page, up to <main>: with the title, the report's style and more of it.
std::string page_begin(std::string_view title, std::string_view more_style = "");

// Returns a <section> with the table's title and its rows; all texts are escaped.
std::string table_section(const Table& table, std::string_view css_class = "wide");

// Returns a <section> with a paragraph for each line; all texts are escaped.
std::string lines_section(std::string_view title, std::span<const std::string> lines);

}  // namespace farstep
