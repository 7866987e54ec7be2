// The report's figures as sentences and tables, without a layout. The text report and the page lay
// them out.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/report/idle_table.h"
#include "trainer/report/report.h"

namespace farstep {

// Returns short sentences, without full stops, about the run and its end.
std::vector<std::string> facts(const RunReport& report);

// A figure with its unit, and what it is.
struct HeadlineFigure {
  std::string value, label;
};

// Returns the figures that a reader wants first, above all tables.
std::vector<HeadlineFigure> headline_figures(const RunReport& report);

// Steps, tokens or images computed and merged, throughput and losses; one row for each site.
Table work_table(const RunReport& report);

// Work of the devices of sites with several; one row for each device, no rows without such a site.
Table device_table(const RunReport& report);

// Returns one line for each site: the plan of its last round and the reason.
std::vector<std::string> plan_lines(const RunReport& report);

// Returns one line for each change of how the sites sync, with the reason.
std::vector<std::string> sync_lines(const RunReport& report);

// Bytes, speed, round trip and retransmissions of the links. One row for each link and direction
// and one for each site's uplink; no rows if nothing was measured.
Table link_table(const RunReport& report);

// Bytes sent and received by each site, as payload and as the kernel counts them, and its WAN time,
// exposed and hidden by training.
Table traffic_table(const RunReport& report);

// Return the run's settings by name, as the newest process has them: those that have no default or
// another value, and the others. No rows if the records have none.
Table chosen_settings_table(const RunReport& report);
Table default_settings_table(const RunReport& report);

// Returns the setting of a line of a `run` event, and its value: of "outer.rounds=8" both parts.
std::pair<std::string, std::string> setting_parts(const std::string& line);

// One row for each round, with the accuracy if the run has one. With more than about `most_rows`
// rounds it keeps evenly spaced ones and the last.
Table round_table(const RunReport& report, std::size_t most_rows);

}  // namespace farstep
