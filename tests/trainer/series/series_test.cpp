#include "trainer/series/series.h"

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
  CHECK(find(all, "node1", "loss/round").points[0].time ==
        Approx(find(all, "node2", "loss/round").points[0].time));
  const auto& validation = find(all, "run", "loss/validation").points;
  REQUIRE(validation.size() == report.validation_losses.size());
  for (const auto& point : validation)
    CHECK(point.value == report.validation_losses.at(point.place));
  for (const auto& one : all) CHECK_FALSE(one.points.empty());
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
