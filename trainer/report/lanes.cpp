#include "trainer/report/lanes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

std::string_view class_of(std::size_t kind) {
  return kind == kCompute ? "compute" : name_of(static_cast<SpanCause>(kind));
}

std::string_view label_of_kind(std::size_t kind) {
  return kind == kCompute ? "training" : label_of(static_cast<SpanCause>(kind));
}

Lane make_lane(const SiteReport& site, double from) {
  Lane lane{.processes = site.timeline.processes()};
  const auto is_shown = [=](const Interval& interval) { return interval.end >= from; };
  std::ranges::copy_if(site.timeline.recent(), std::back_inserter(lane.activities), is_shown);
  std::ranges::copy_if(site.timeline.older(), std::back_inserter(lane.stretches), is_shown);
  for (const auto& record : site.milestones) {
    const auto* round = std::get_if<RoundEvent>(&record.event);
    if (round != nullptr && record.time >= from) lane.commits[round->round] = record.time;
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
  const auto share = [&](const Interval& interval, const auto& add) {
    // Times of a damaged file may be anything.
    const double end = std::min(column_at(interval.end), static_cast<double>(columns));
    double begin = std::max(column_at(interval.start), 0.0);
    while (begin < end) {
      const auto column = static_cast<std::size_t>(begin);
      const double until = std::min(end, static_cast<double>(column + 1));
      add(shares[column], until - begin);
      begin = until;
    }
  };
  for (const auto& stretch : lane.stretches) {
    share(stretch, [&](auto& column, double overlap) {
      const double part = overlap / (stretch.end - stretch.start);
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        column[kind] += part * static_cast<double>(stretch.seconds[kind]);
      }
    });
  }
  for (const auto& activity : lane.activities) {
    share(activity, [&](auto& column, double overlap) { column[activity.kind] += overlap; });
  }
  return shares;
}

// Both sides of a box are rounded as sums from below, so that boxes neither overlap nor leave gaps.
Boxes boxes_of(const std::array<double, kKinds>& shares) {
  Boxes boxes;
  double stacked = 0;
  int below = 0;
  for (std::size_t i = 0; i < kKinds; ++i) {
    const std::size_t kind = kind_from_below(i);
    stacked += shares[kind] * kLaneLevels;
    // Shares of a damaged file may be anything.
    const int top = stacked < kLaneLevels ? static_cast<int>(std::lround(stacked)) : kLaneLevels;
    if (top > below) boxes[kind] = {below, top};
    below = std::max(below, top);
  }
  return boxes;
}

}  // namespace farstep
