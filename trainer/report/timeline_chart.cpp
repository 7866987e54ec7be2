// A lane is a strip of columns about a pixel wide, each filled in proportion to what the site did
// in that time. So the size of the drawing depends on its width and not on the length of the run.
#include "trainer/report/timeline_chart.h"

#include <algorithm>

#include "trainer/report/lanes.h"
#include "trainer/report/svg_chart.h"

namespace farstep {

namespace {

constexpr std::size_t kMostTips = 1500;           // of all lanes; bounds the size of the page
constexpr std::size_t kMostColumns = 16'000;      // of all lanes; bounds the size of the page
constexpr std::size_t kMostColumnsOfLane = 1000;  // about a pixel each on a wide screen
constexpr double kLeastRoundWidth = 4;            // columns; narrower rounds look like one

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

// Draws a lane. Most columns have the boxes of their neighbours, and one rectangle covers them.
void draw_lane(SvgCanvas& canvas, const Shares& shares, double height, const std::string& site) {
  const double column_width = SvgCanvas::kPathWidth / static_cast<double>(shares.size());
  std::array<std::string, kKinds> paths;
  Boxes open;  // of the rectangles that have no end yet
  std::array<std::size_t, kKinds> since{};
  for (std::size_t column = 0; column <= shares.size(); ++column) {
    const auto boxes = column < shares.size() ? boxes_of(shares[column]) : Boxes{};
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (boxes[kind] == open[kind]) continue;
      if (const auto [bottom, top] = open[kind]; top > 0) {
        const double level = height / kLaneLevels;
        const auto width = pixels(static_cast<double>(column - since[kind]) * column_width);
        paths[kind] += fmt::format(
            "M{} {}h{}v{}h-{}z", pixels(static_cast<double>(since[kind]) * column_width),
            pixels(height - top * level), width, pixels((top - bottom) * level), width);
      }
      open[kind] = boxes[kind];
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
                     double height) {
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
    canvas.rect(begin, 0, x(time(extent.end)) - begin, height, "tip", tip);
  }
}

// Returns the axis above the lanes: a mark at each commit.
SvgCanvas round_axis(const std::map<int64_t, double>& commits, const RunTime& time,
                     const Scale& x) {
  SvgCanvas axis(kAxisHeight, "axis");
  std::vector<Tick> ticks;
  for (const auto& [round, label] :
       whole_ticks(0, static_cast<double>(commits.rbegin()->first), 20)) {
    const auto commit = commits.find(static_cast<int64_t>(round));
    if (commit != commits.end()) ticks.emplace_back(x(time(commit->second)), label);
  }
  for (const auto& tick : ticks) {
    axis.line(tick.first, kAxisHeight - 7, tick.first, kAxisHeight - 1, "mark");
  }
  axis.labels(ticks, kAxisHeight - 11, kLeastLanePixels);
  return axis;
}

bool shows_rounds(const RunReport& report) {
  return static_cast<double>(report.rounds_done) * kLeastRoundWidth <=
         static_cast<double>(kMostColumnsOfLane);
}

// Returns the number of columns of a lane, about a pixel wide each. If rounds are too narrow to
// see, a column covers several rounds. It then shows their mean, not a beat pattern of rounds
// against columns.
std::size_t count_columns(const RunReport& report) {
  // Fewer than 100 columns look like stripes. Eight rounds in a column leave no beat that an eye
  // sees.
  constexpr std::size_t kLeast = 100, kRoundsOfColumn = 8;
  const auto most = std::clamp(kMostColumns / report.sites.size(), kLeast, kMostColumnsOfLane);
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
  const RunTime time(lanes);
  if (!(time.total() > 0)) return "<p>nothing has happened yet</p>\n";
  const bool is_dense = lanes.size() > kFewSites;
  const double height = is_dense ? 14 : 30;
  const double pitch = height + (is_dense ? 4 : 10);
  RowChart chart(is_dense ? "lanes dense" : "lanes", "Timeline of every site");
  const Scale x{0, time.total()};
  const std::size_t columns = count_columns(report);
  const bool with_tips = shows_rounds(report) && site_rounds <= kMostTips;
  const auto ticks = placed(time_ticks(time.total(), 10), x);
  if (const auto commits = all_commits(lanes); !commits.empty()) {
    chart.add_axis("round", round_axis(commits, time, x));
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    SvgCanvas canvas(pitch, "strip");
    for (const auto& tick : ticks) canvas.line(tick.first, 0, tick.first, pitch, "grid");
    canvas.rect(0, 0, 100, height, "lane");
    draw_lane(canvas, shares_of(lanes[i], time, columns), height, report.sites[i].site);
    if (with_tips) draw_round_tips(canvas, report.sites[i], time, x, height);
    for (const double cut : time.cuts()) canvas.line(x(cut), 0, x(cut), pitch, "cut");
    chart.add(report.sites[i].site, canvas);
  }
  SvgCanvas axis(kAxisHeight, "axis");
  axis.labels(ticks, 14, kLeastLanePixels);
  chart.add_axis("", axis);
  return chart.finish();
}

}  // namespace farstep
