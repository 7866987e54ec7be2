#include "trainer/series/series.h"

#include <algorithm>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/trainer/watch/watched_run.h"
#include "trainer/series/csv.h"

namespace farstep {

namespace {

const Series& find(const std::vector<Series>& all, const std::string& owner,
                   const std::string& name) {
  for (const auto& one : all) {
    if (one.owner == owner && one.name == name) return one;
  }
  FAIL("no series " << owner << " " << name);
  return all.front();
}

}  // namespace

TEST_CASE("the series have every step and round with the figures of the report") {
  const auto run = watched_run();
  const auto report = report_of({run.records(0), run.records(1, 5)});
  const auto all = series_of(report);
  for (const auto& site : report.sites) {
    const auto& losses = find(all, site.site, "loss/step").points;
    REQUIRE(static_cast<int64_t>(losses.size()) == site.steps);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CHECK(losses[i].place == static_cast<int64_t>(i) + 1);
    }
    CHECK(losses.back().value == site.last_loss);
    double waited = 0;
    for (const auto& point : find(all, site.site, "seconds/wan").points) waited += point.value;
    CHECK(waited == Approx(site.time().total.seconds(SpanCause::kWan)));
  }
  // The second site's clock is behind; its times are the coordinator's all the same.
  CHECK(find(all, "node1", "loss/round").points[0].time -
            find(all, "node2", "loss/round").points[0].time ==
        Approx(0).margin(1e-3));
  const auto& validation = find(all, "run", "loss/validation").points;
  REQUIRE(validation.size() == report.validation_losses.size());
  for (const auto& point : validation)
    CHECK(point.value == report.validation_losses.at(point.place));
  for (const auto& one : all) CHECK_FALSE(one.points.empty());
}

TEST_CASE("each process of a site has its own distance from the coordinator's clock") {
  const auto run = watched_run();
  const auto right = run.records(0);
  auto resumed = run.records(0, 300);  // then its clock was set right, and it was started again
  const auto saved = std::ranges::find_if(right, [](const Record& record) {
    const auto* checkpoint = std::get_if<CheckpointEvent>(&record.event);
    return checkpoint != nullptr && checkpoint->round == 2;
  });
  REQUIRE(saved != right.end());
  resumed.resize(static_cast<std::size_t>(saved - right.begin()) + 1);
  auto start = std::get<RunEvent>(right.front().event);
  start.start_round = 2;
  resumed.push_back({saved->time, "node1", start});
  resumed.insert(resumed.end(), saved + 1, right.end());
  const auto times_of = [](const std::vector<Record>& records) {
    std::vector<double> times;
    for (const auto& one : series_of(report_of({records}))) {
      for (const auto& point : one.points) times.push_back(point.time);
    }
    return times;
  };
  const auto expected = times_of(right), times = times_of(resumed);
  REQUIRE(times.size() == expected.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    CHECK(times[i] - expected[i] == Approx(0).margin(1e-3));
  }
}

TEST_CASE("a CSV file gives back every number and no name is taken for a formula") {
  const std::vector<Series> series = {{"a,\"b\"\nc", "loss", {{1.5, 2, 0.1}, {1e9, 3, 1.0 / 3}}},
                                      {"=1+1", "-x", {{0, 0, -2}}}};
  const auto text = csv_text(series);
  CHECK(text ==
        "owner,series,place,time,value\n"
        "\"a,\"\"b\"\"\nc\",loss,2,1.5,0.1\n"
        "\"a,\"\"b\"\"\nc\",loss,3,1000000000,0.3333333333333333\n"
        "'=1+1,'-x,0,0,-2\n");
  CHECK(csv_text({}) == "owner,series,place,time,value\n");
}

}  // namespace farstep
