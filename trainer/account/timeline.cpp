// A drawing of any window that ends now has some hundred columns. So what is long ago may be
// coarse in proportion to its age, and the number of stretches grows with the logarithm of time.
#include "trainer/account/timeline.h"

#include <algorithm>

namespace farstep {

namespace {

constexpr std::size_t kMostRecent = 8192;  // of these the older half becomes stretches
constexpr std::size_t kLeastJoined = 4096;
constexpr double kMostSeconds = 1e30;       // sums of which a float can hold
constexpr double kResolution = 1.0 / 1024;  // of the age; about a column of the widest drawing

}  // namespace

// Adds the process's clock offset to all times, so that the lanes of different machines line up.
// Without it a site seems to commit before it has the bytes.
void Timeline::add(const Record& record) {
  const auto* run = std::get_if<RunEvent>(&record.event);
  if (run != nullptr) offset_ = run->clock_offset_seconds;
  const double time = record.time + offset_;
  if (run != nullptr || processes_.empty()) processes_.push_back({time, time});
  processes_.back().end = time;
  if (const auto* step = std::get_if<StepEvent>(&record.event)) {
    const double start = step->start + offset_;
    add({{start - step->data_seconds, start}, static_cast<std::size_t>(SpanCause::kData)},
        step->round);
    add({{start, start + step->seconds}, kCompute}, step->round);
  } else if (const auto* span = std::get_if<SpanEvent>(&record.event)) {
    const double start = span->start + offset_;
    add({{start, start + span->seconds}, static_cast<std::size_t>(span->cause)}, span->round);
  }
}

void Timeline::add(Activity activity, int64_t round) {
  activity.process = processes_.size() - 1;
  recent_.push_back(activity);
  auto& extent = rounds_.try_emplace(round, Interval{activity.start, activity.end}).first->second;
  extent = {std::min(extent.start, activity.start), std::max(extent.end, activity.end)};
  if (recent_.size() > kMostRecent) move_to_older();
}

void Timeline::move_to_older() {
  constexpr auto kMoved = static_cast<std::ptrdiff_t>(kMostRecent / 2);
  for (std::ptrdiff_t i = 0; i < kMoved; ++i) {
    const auto& activity = recent_[static_cast<std::size_t>(i)];
    Stretch stretch{activity, {}, activity.process};
    // Times of a damaged file may be anything.
    const double seconds = std::min(stretch.end - stretch.start, kMostSeconds);
    stretch.seconds[activity.kind] = static_cast<float>(seconds);
    // Most steps have their batch at once.
    if (stretch.end > stretch.start) older_.push_back(stretch);
  }
  recent_.erase(recent_.begin(), recent_.begin() + kMoved);
  if (older_.size() > join_at_) join_older();
}

// Age is running time: the pause between two processes is cut out of the drawing of the whole run.
void Timeline::join_older() {
  // The running time from the end of each process on.
  std::vector<double> later(processes_.size());
  for (std::size_t i = processes_.size() - 1; i > 0; --i) {
    later[i - 1] = later[i] + processes_[i].end - processes_[i].start;
  }
  std::size_t joined = 0;
  for (std::size_t i = 1; i < older_.size(); ++i) {
    auto& last = older_[joined];
    const auto& next = older_[i];
    const Interval both{std::min(last.start, next.start), std::max(last.end, next.end)};
    const double age = later[next.process] + processes_[next.process].end - both.end;
    if (last.process == next.process && both.end - both.start <= kResolution * age) {
      static_cast<Interval&>(last) = both;
      for (std::size_t kind = 0; kind < kKinds; ++kind) last.seconds[kind] += next.seconds[kind];
    } else {
      older_[++joined] = next;
    }
  }
  older_.resize(joined + 1);
  join_at_ = older_.size() + kLeastJoined;
}

}  // namespace farstep
