#include "trainer/report/lanes.h"

#include <algorithm>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

// Returns the place of the first record that was written since then. Records are written at the end
// of what they tell of.
std::size_t first_since(const SiteReport& site, double from) {
  std::size_t first = site.records.size();
  while (first > 0 && site.records[first - 1].time + site.run.clock_offset_seconds >= from) {
    --first;
  }
  return first;
}

}  // namespace

std::string_view class_of(std::size_t kind) {
  return kind == kCompute ? "compute" : name_of(static_cast<SpanCause>(kind));
}

std::string_view label_of_kind(std::size_t kind) {
  return kind == kCompute ? "training" : label_of(static_cast<SpanCause>(kind));
}

// Adds the site's clock offset to all times, so that the lanes of different machines line up.
// Without it a site seems to commit before it has the bytes.
Lane make_lane(const SiteReport& site, double from) {
  Lane lane;
  const std::size_t first = first_since(site, from);
  // The record of the process may be older than `from`.
  double offset = first > 0 ? site.run.clock_offset_seconds : 0;
  for (std::size_t i = first; i < site.records.size(); ++i) {
    const auto& record = site.records[i];
    if (const auto* run = std::get_if<RunEvent>(&record.event)) {
      offset = run->clock_offset_seconds;
      lane.processes.push_back({record.time + offset, record.time + offset});
    } else if (const auto* step = std::get_if<StepEvent>(&record.event)) {
      const double start = step->start + offset;
      lane.activities.push_back({{start - step->data_seconds, start},
                                 static_cast<std::size_t>(SpanCause::kData),
                                 step->round});
      lane.activities.push_back({{start, start + step->seconds}, kCompute, step->round});
    } else if (const auto* span = std::get_if<SpanEvent>(&record.event)) {
      const double start = span->start + offset;
      lane.activities.push_back(
          {{start, start + span->seconds}, static_cast<std::size_t>(span->cause), span->round});
    } else if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
      lane.commits[round->round] = record.time + offset;
    }
    if (lane.processes.empty()) lane.processes.push_back({record.time + offset, 0});
    lane.processes.back().end = record.time + offset;
  }
  return lane;
}

std::map<int64_t, double> all_commits(const std::vector<Lane>& lanes) {
  std::map<int64_t, double> commits;
  for (const auto& lane : lanes) {
    for (const auto& [round, time] : lane.commits) {
      const auto first = commits.try_emplace(round, time).first;
      first->second = std::min(first->second, time);
    }
  }
  return commits;
}

Shares share_out(const Lane& lane, std::size_t columns,
                 const std::function<double(double time)>& column_at) {
  Shares shares(columns);
  for (const auto& activity : lane.activities) {
    // Times of a damaged file may be anything.
    const double end = std::min(column_at(activity.end), static_cast<double>(columns));
    double begin = std::max(column_at(activity.start), 0.0);
    while (begin < end) {
      const auto column = static_cast<std::size_t>(begin);
      const double until = std::min(end, static_cast<double>(column + 1));
      shares[column][activity.kind] += until - begin;
      begin = until;
    }
  }
  return shares;
}

}  // namespace farstep
