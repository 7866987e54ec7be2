// A table without a layout, and the first of the report's: how each site's time was used.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

struct Table {
  struct Row {
    std::vector<std::string> cells;
    bool is_sum = false;  // sums up the rows above it
  };
  std::string title;
  std::vector<std::string> header;
  std::vector<Row> rows;             // each has as many cells as the header
  std::size_t left_columns = 1;      // aligned left; the others are numbers
  std::size_t trailing_columns = 0;  // kept together at the end if the table is split
};

// Idle seconds a round by cause (rows) and site (columns), as in the papers, with the sites' total
// and its share of all time. Rows below have the times that are not idle, so that the table
// explains all time: training, and outages with the training that was done again after them.
Table idle_table(const RunReport& report);

}  // namespace farstep
