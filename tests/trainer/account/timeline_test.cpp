#include "trainer/account/timeline.h"

#include <cmath>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/report/lanes.h"

namespace farstep {

namespace {

std::array<double, kKinds> seconds_of(const Timeline& timeline) {
  std::array<double, kKinds> seconds{};
  for (const auto& activity : timeline.recent()) {
    seconds[activity.kind] += activity.end - activity.start;
  }
  for (const auto& stretch : timeline.older()) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      seconds[kind] += static_cast<double>(stretch.seconds[kind]);
    }
  }
  return seconds;
}

// The columns of a window up to `now`, drawn from all activities.
Shares exact_shares(const std::vector<Activity>& activities, std::size_t columns,
                    const std::function<double(double)>& column_at) {
  return share_out(Lane{.activities = activities}, columns, column_at);
}

}  // namespace

TEST_CASE("a timeline of any length has the time of every kind in few stretches") {
  for (const int64_t rounds : {1, 30, 300, 3000}) {
    SyntheticRun run;
    run.rounds = rounds;
    Timeline timeline;
    TimeUse use;
    for (const auto& record : run.records(0)) {
      timeline.add(record);
      if (const auto* step = std::get_if<StepEvent>(&record.event)) {
        use.compute_seconds += step->seconds;
        use.seconds(SpanCause::kData) += step->data_seconds;
      } else if (const auto* span = std::get_if<SpanEvent>(&record.event)) {
        use.seconds(span->cause) += span->seconds;
      }
    }
    const auto seconds = seconds_of(timeline);
    CHECK(seconds[kCompute] == Approx(use.compute_seconds).epsilon(1e-5));
    for (std::size_t i = 0; i < kSpanCauses; ++i) {
      CHECK(seconds[i] == Approx(use.seconds_by_cause[i]).epsilon(1e-4));
    }
    CHECK(timeline.recent().size() <= 8192);
    CHECK(timeline.older().size() < 20'000);
    CHECK(std::ssize(timeline.rounds()) == rounds);
  }
}

TEST_CASE("a window of a long timeline looks as if nothing had been joined") {
  SyntheticRun run;
  run.rounds = 2000;
  Timeline timeline;
  std::vector<Activity> activities;
  double now = 0;
  for (const auto& record : run.records(0)) {
    timeline.add(record);
    now = record.time;
    if (const auto* step = std::get_if<StepEvent>(&record.event)) {
      activities.push_back({{step->start - step->data_seconds, step->start},
                            static_cast<std::size_t>(SpanCause::kData)});
      activities.push_back({{step->start, step->start + step->seconds}, kCompute});
    } else if (const auto* span = std::get_if<SpanEvent>(&record.event)) {
      activities.push_back(
          {{span->start, span->start + span->seconds}, static_cast<std::size_t>(span->cause)});
    }
  }
  const Lane lane{.activities = {timeline.recent().begin(), timeline.recent().end()},
                  .stretches = timeline.older()};
  constexpr std::size_t kColumns = 360;
  for (const double window : {10.0, 120.0, 600.0, 3600.0, 20'000.0, 50'000.0}) {
    const auto column_at = [&](double time) {
      return (time - (now - window)) / window * static_cast<double>(kColumns);
    };
    const auto drawn = share_out(lane, kColumns, column_at);
    const auto exact = exact_shares(activities, kColumns, column_at);
    double different = 0;
    for (std::size_t column = 0; column < kColumns; ++column) {
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        different += std::abs(drawn[column][kind] - exact[column][kind]) / 2;
      }
    }
    // The columns that are off, together, of all.
    INFO(window);
    CHECK(different < 0.01 * static_cast<double>(kColumns));
  }
}

TEST_CASE("the pause between two processes is in no stretch") {
  SyntheticRun run;
  run.rounds = 200;
  Timeline timeline;
  auto records = run.records(0);
  for (const auto& record : records) timeline.add(record);
  const double stopped = records.back().time;
  run.start = stopped + 1e6;
  records = run.records(0);
  for (const auto& record : records) timeline.add(record);
  REQUIRE(timeline.processes().size() == 2);
  CHECK(timeline.processes()[0].end == stopped);
  CHECK(timeline.older().front().end < stopped);
  for (const auto& stretch : timeline.older()) {
    CHECK((stretch.end <= stopped || stretch.start >= run.start));
    CHECK(stretch.end - stretch.start < 100);
  }
}

}  // namespace farstep
