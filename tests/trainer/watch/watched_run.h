// Reports of made-up runs, for the tests of what watches them.
#pragma once

#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/account/run_report.h"

namespace farstep {

// Returns the report of the records of some sites, settled.
inline RunReport report_of(const std::vector<std::vector<Record>>& sites) {
  RunReport report;
  for (const auto& records : sites) {
    report.sites.emplace_back(records.front().site);
    for (const auto& record : records) report.sites.back().add(record);
  }
  report.settle();
  return report;
}

// Two sites, four rounds of two steps.
inline SyntheticRun watched_run() {
  SyntheticRun run;
  run.step_seconds = {0.5, 0.25};
  run.rounds = 4;
  run.steps = 2;
  return run;
}

}  // namespace farstep
