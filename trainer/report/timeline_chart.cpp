// A lane is a strip of columns about a pixel wide, each filled in proportion to what the site did
// in that time. So the size of the drawing depends on its width and not on the length of the run.
#include "trainer/report/timeline_chart.h"

#include <algorithm>
#include <cmath>

#include "trainer/report/lanes.h"
#include "trainer/report/svg_chart.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

constexpr double kWidth = 1160, kLeft = 104, kRight = 12, kTop = 30, kBottom = 30;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr std::size_t kMostTips = 1500;       // of all lanes; bounds the size of the page
constexpr std::size_t kMostColumns = 16'000;  // of all lanes; bounds the size of the page
constexpr double kLeastRoundWidth = 4;        // pixels; narrower rounds look like one

// Maps time to run time, which leaves out the times at which no site's process ran. A run that was
// resumed next morning would otherwise be two narrow stripes.
class RunTime {
 public:
  // Joins overlapping lifetimes of all sites' processes; the gaps between them are cut out.
  explicit RunTime(const std::vector<Lane>& lanes) {
    std::vector<Interval> alive;
    for (const auto& lane : lanes) {
      alive.insert(alive.end(), lane.processes.begin(), lane.processes.end());
    }
    std::sort(alive.begin(), alive.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
    for (const auto& interval : alive) {
      if (!alive_.empty() && interval.start <= alive_.back().end) {
        alive_.back().end = std::max(alive_.back().end, interval.end);
      } else {
        alive_.push_back(interval);
      }
    }
    for (const auto& interval : alive_) {
      begins_.push_back(total_);
      total_ += interval.end - interval.start;
    }
  }

  // Returns the seconds of run time before `time`.
  double operator()(double time) const {
    double passed = 0;
    for (std::size_t i = 0; i < alive_.size() && alive_[i].start <= time; ++i) {
      passed = begins_[i] + std::min(time, alive_[i].end) - alive_[i].start;
    }
    return passed;
  }
  double total() const { return total_; }
  // Returns the places of the cuts, in seconds of run time.
  std::vector<double> cuts() const { return {begins_.begin() + 1, begins_.end()}; }

 private:
  std::vector<Interval> alive_;  // in order, disjoint
  std::vector<double> begins_;   // run time at the start of each
  double total_ = 0;
};

// Shares of columns instead of a rectangle for each activity: a run of 100,000 steps would make a
// page of many megabytes.
Shares shares_of(const Lane& lane, const RunTime& time, std::size_t columns) {
  const double columns_a_second = static_cast<double>(columns) / time.total();
  return share_out(lane, columns, [&](double at) { return time(at) * columns_a_second; });
}

// Draws a lane. In each column the kinds are stacked from the bottom, in whole levels. So most
// columns equal their neighbours, and one rectangle covers them.
void draw_lane(SvgCanvas& canvas, const Shares& shares, double top, double height,
               const std::string& site) {
  // 24 levels on 30 pixels: finer ones cannot be told apart, and hinder the merging.
  constexpr double kLevels = 24;
  const double column_width = kPlotWidth / static_cast<double>(shares.size());
  std::array<std::string, kKinds> paths;
  std::array<std::pair<double, double>, kKinds> open{};  // bottom and top of the open rectangle
  std::array<std::size_t, kKinds> since{};
  for (std::size_t column = 0; column <= shares.size(); ++column) {
    double stacked = 0;
    for (std::size_t i = 0; i < kKinds; ++i) {
      const std::size_t kind = (i + kCompute) % kKinds;  // computing is at the bottom
      std::pair<double, double> box{0, 0};
      if (column < shares.size()) {
        box.first = std::min(std::round(stacked * kLevels), kLevels);
        stacked += shares[column][kind];
        box.second = std::min(std::round(stacked * kLevels), kLevels);
        if (box.second == box.first) box = {0, 0};
      }
      if (box == open[kind]) continue;
      if (open[kind].second > 0) {
        const double box_height = (open[kind].second - open[kind].first) / kLevels * height;
        paths[kind] += fmt::format(
            "M{} {}h{}v{}h-{}z", pixels(kLeft + static_cast<double>(since[kind]) * column_width),
            pixels(top + height * (1 - open[kind].second / kLevels)),
            pixels(static_cast<double>(column - since[kind]) * column_width), pixels(box_height),
            pixels(static_cast<double>(column - since[kind]) * column_width));
      }
      open[kind] = box;
      since[kind] = column;
    }
  }
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (paths[kind].empty()) continue;
    canvas.path(paths[kind], class_of(kind), fmt::format("{}: {}", site, label_of_kind(kind)));
  }
}

// Draws invisible boxes whose tips describe a round.
void draw_round_tips(SvgCanvas& canvas, const SiteReport& site, const RunTime& time, const Scale& x,
                     double top, double height) {
  for (const auto& [round, extent] : site.timeline.rounds()) {
    const auto& use = site.time().rounds.at(round);
    std::string tip =
        fmt::format("{}, round {}\ntraining {:.2f} s", site.site, round, use.compute_seconds);
    for (std::size_t i = 0; i < kSpanCauses; ++i) {
      if (use.seconds_by_cause[i] > 0) {
        tip += fmt::format("\n{} {:.2f} s", label_of_kind(i), use.seconds_by_cause[i]);
      }
    }
    const double begin = x(time(extent.start));
    canvas.rect(begin, top, x(time(extent.end)) - begin, height, "tip", tip);
  }
}

// Draws the time axis below the lanes, and above them a mark at each commit of the first site.
void draw_axes(SvgCanvas& canvas, const std::vector<Lane>& lanes, const RunTime& time,
               const Scale& x, double bottom) {
  for (const auto& [seconds, label] : time_ticks(time.total(), 10)) {
    canvas.line(x(seconds), kTop - 4, x(seconds), bottom + 4, "grid");
    canvas.text(x(seconds), bottom + 19, label, "tick", Anchor::kMiddle);
  }
  const auto& commits = lanes.front().commits;
  if (!commits.empty()) {
    canvas.text(kLeft - 12, kTop - 12, "round", "tick", Anchor::kEnd);
    const auto last_round = static_cast<double>(commits.rbegin()->first);
    for (const auto& [tick, label] : number_ticks(0, last_round, 20)) {
      const auto commit = commits.find(static_cast<int64_t>(tick));
      if (tick != std::floor(tick) || commit == commits.end()) continue;
      const double at = x(time(commit->second));
      canvas.line(at, kTop - 9, at, kTop - 3, "mark");
      canvas.text(at, kTop - 13, label, "tick", Anchor::kMiddle);
    }
  }
}

bool shows_rounds(const RunReport& report) {
  return static_cast<double>(report.rounds_done) * kLeastRoundWidth <= kPlotWidth;
}

// Returns the number of columns of a lane, about a pixel wide each. If rounds are too narrow to
// see, a column covers several rounds. It then shows their mean, not a beat pattern of rounds
// against columns.
std::size_t count_columns(const RunReport& report) {
  // Fewer than 100 columns look like stripes. Eight rounds in a column leave no beat that an eye
  // sees.
  constexpr std::size_t kLeast = 100, kRoundsOfColumn = 8;
  const auto most =
      std::clamp(kMostColumns / report.sites.size(), kLeast, static_cast<std::size_t>(kPlotWidth));
  if (shows_rounds(report)) return most;
  return std::clamp(static_cast<std::size_t>(report.rounds_done) / kRoundsOfColumn, kLeast, most);
}

}  // namespace

// Tips for single rounds are left out when there are too many of them, or when rounds are too
// narrow.
std::string timeline_chart(const RunReport& report) {
  std::vector<Lane> lanes;
  std::size_t site_rounds = 0;
  for (const auto& site : report.sites) {
    lanes.push_back(make_lane(site));
    site_rounds += site.time().rounds.size();
  }
  const double height = lanes.size() > 12 ? 14 : 30;
  const double pitch = height + (lanes.size() > 12 ? 4 : 10);
  const double bottom = kTop + pitch * static_cast<double>(lanes.size());
  SvgCanvas canvas(kWidth, bottom + kBottom, "Timeline of every site");
  const RunTime time(lanes);
  if (!(time.total() > 0)) {
    canvas.text(kWidth / 2, kTop + height / 2, "nothing has happened yet", "tick", Anchor::kMiddle);
    return canvas.finish();
  }
  const Scale x{0, time.total(), kLeft, kWidth - kRight};
  const std::size_t columns = count_columns(report);
  const bool with_tips = shows_rounds(report) && site_rounds <= kMostTips;
  draw_axes(canvas, lanes, time, x, bottom);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const double top = kTop + pitch * static_cast<double>(i);
    canvas.text(kLeft - 12, top + height / 2 + 4, short_name(report.sites[i].site), "lane-name",
                Anchor::kEnd);
    canvas.rect(kLeft, top, kPlotWidth, height, "lane");
    draw_lane(canvas, shares_of(lanes[i], time, columns), top, height, report.sites[i].site);
    if (with_tips) draw_round_tips(canvas, report.sites[i], time, x, top, height);
  }
  for (const double cut : time.cuts()) canvas.line(x(cut), kTop - 4, x(cut), bottom + 4, "cut");
  return canvas.finish();
}

}  // namespace farstep
