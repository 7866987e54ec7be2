// The report's figures as words and tables, for whoever lays them out: as text or as a page.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/report/report.h"

namespace farstep {

struct Table {
  struct Row {
    std::vector<std::string> cells;
    bool is_sum = false;  // sums up the rows above it
  };
  std::string title;
  std::vector<std::string> header;
  std::vector<Row> rows;             // as many cells as the header has
  std::size_t left_columns = 1;      // aligned to the left; the others are numbers
  std::size_t trailing_columns = 0;  // stay together at the end if the table must be split
};

// What the run is, and how it ended: a few short sentences without a stop.
std::vector<std::string> facts(const RunReport& report);

// Idle seconds a round by cause (rows) and site (columns), as in the papers, with the sites' total
// and its share of all time; below it the time that is not idle, so that all of it is explained.
Table idle_table(const RunReport& report);

// Steps, tokens, throughput and losses: a row a site.
Table work_table(const RunReport& report);

// What each device of sites with several did: a row a device; no rows if there is no such site.
Table device_table(const RunReport& report);

// What the plan gave each site in the round that it began last, and why: a line a site.
std::vector<std::string> plan_lines(const RunReport& report);

// How the sites changed the way they sync, and why: a line a change.
std::vector<std::string> sync_lines(const RunReport& report);

// Bytes, speed, round trip and retransmissions of the ways between sites: a row for each and its
// direction, and one for each site's uplink; no rows if nothing was measured.
Table link_table(const RunReport& report);

// Bytes a site sent and received, payload and as counted by the kernel, and how long its syncs kept
// the WAN busy, exposed and hidden behind training: a row a site.
Table traffic_table(const RunReport& report);

// A row a round, at most about `most_rows` of them: evenly thinned out, the last one always there.
Table round_table(const RunReport& report, std::size_t most_rows);

}  // namespace farstep
