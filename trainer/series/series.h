// A run's figures as series of numbers over time, for programs that draw them. A pure function;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

struct SeriesPoint {
  double time = 0;    // unix seconds, in the coordinator's time
  int64_t place = 0;  // the step of the site since its begin, or the round
  double value = 0;
};

struct Series {
  std::string owner;  // the site, or "run"
  std::string name;   // "loss/step"
  std::vector<SeriesPoint> points;
};

// Returns the series that have points. Of a site by step: loss/step, gradient_norm, learning_rate.
// Of a site by round: loss/round, batch, tokens_per_second, idle_share, seconds/CAUSE,
// averaging_weight, link/PEER/Mbit_per_second. Of the run by round: loss/training,
// loss/validation, accuracy, noise_scale.
std::vector<Series> series_of(const RunReport& report);

}  // namespace farstep
