// What a site did at which time, and how that fills the columns of a timeline.
//
// Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "trainer/account/site_report.h"

namespace farstep {

// Returns a kind's name in style sheets: "compute" or the name of the cause.
std::string_view class_of(std::size_t kind);
// Returns it in words.
std::string_view label_of_kind(std::size_t kind);

struct Lane {
  std::vector<Activity> activities = {};
  std::vector<Stretch> stretches = {};     // older than these
  std::vector<Interval> processes = {};    // times during which a process of the site ran
  std::map<int64_t, double> commits = {};  // of rounds
};

// Returns what the site did since `from`, in the coordinator's time.
Lane make_lane(const SiteReport& site, double from = -std::numeric_limits<double>::infinity());

// Returns when each round was committed: first, as all sites commit it within moments.
std::map<int64_t, double> all_commits(const std::vector<Lane>& lanes);

// For every column of a lane, the share of its time that each kind has.
using Shares = std::vector<std::array<double, kKinds>>;

// Lets each activity count in each column by its overlap with the column's time, and a stretch as
// if it were the same all the time. `column_at` returns where a time is, in columns; those outside
// of 0 to `columns` are left out.
Shares share_out(const Lane& lane, std::size_t columns,
                 const std::function<double(double time)>& column_at);

// A drawn column has so many levels. Finer ones cannot be told apart, and would make neighbours
// differ that look alike.
inline constexpr int kLaneLevels = 24;

// The levels of a column that a kind fills: none, where both are 0.
struct Box {
  int bottom = 0, top = 0;

  bool operator==(const Box&) const = default;
};
using Boxes = std::array<Box, kKinds>;  // by kind

// Returns the kind that is the `place`-th from below, from 0. Computing is at the bottom.
constexpr std::size_t kind_from_below(std::size_t place) {
  return (place + kCompute) % kKinds;
}

// Stacks a column's kinds in whole levels.
Boxes boxes_of(const std::array<double, kKinds>& shares);

}  // namespace farstep
