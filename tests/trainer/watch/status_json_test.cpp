#include "trainer/watch/status_json.h"

#include "tests/support/catch.h"
#include "tests/trainer/watch/watched_run.h"
#include "trainer/charts/run_curves.h"
#include "trainer/report/html_report.h"
#include "trainer/report/lanes.h"
#include "trainer/report/report.h"
#include "trainer/report/report_tables.h"

namespace farstep {

namespace {

// Seconds of a kind in a site's drawn columns.
double drawn_seconds(const Json& timeline, std::size_t site, std::size_t kind) {
  double levels = 0;
  for (const auto& run : timeline["sites"][site]["runs"]) {
    for (std::size_t i = 1; i < run.size(); i += 2) {
      if (run[i] == kind) levels += run[0].get<double>() * run[i + 1].get<double>();
    }
  }
  return levels / kLaneLevels * timeline["column_seconds"].get<double>();
}

int64_t count_columns(const Json& timeline, std::size_t site) {
  int64_t columns = 0;
  for (const auto& run : timeline["sites"][site]["runs"]) columns += run[0].get<int64_t>();
  return columns;
}

}  // namespace

TEST_CASE("the state has the figures of the report") {
  const auto run = watched_run();
  const auto report = report_of({run.records(0), run.records(1)});
  const std::vector<Alarm> alarms = {{AlarmKind::kLossRises, "", "the loss rises"}};
  const auto json = status_json(report, alarms, 7, run.start);
  CHECK(json["version"] == 7);
  CHECK(json["rounds_done"] == 4);
  CHECK(json["is_over"] == true);
  CHECK(json["alarms"][0]["kind"] == "loss_rises");
  REQUIRE(json["sites"].size() == 2);
  const auto of_report = report_json(report);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& site = json["sites"][i];
    const auto& expected = of_report["sites"][i];
    for (const char* figure : {"site", "steps", "tokens", "compute_seconds", "idle_fraction",
                               "lost_seconds", "outcome"}) {
      CHECK(site[figure] == expected[figure]);
    }
    CHECK(site["idle_seconds"]["wait"] == expected["wait_seconds"]);
    CHECK(site["step"] == 2);
    CHECK(site["fraction"] == 1.0);
    CHECK(site["activity"] == "done");
  }
  std::size_t i = 0;
  for (const auto& [value, label] : headline_figures(report)) {
    CHECK(json["figures"][i++] == Json({{"value", value}, {"label", label}}));
  }
  const auto idle = idle_table(report);
  CHECK(json["idle"]["rows"].size() == idle.rows.size());
  CHECK(json["idle"]["rows"][0]["cells"] == Json(idle.rows[0].cells));
}

TEST_CASE("the timeline of the whole run has the time of every kind") {
  const auto run = watched_run();
  const auto report = report_of({run.records(0), run.records(1, 5)});
  const auto timeline = timeline_json(report, 0, run.start + 1e6);
  for (std::size_t site = 0; site < 2; ++site) {
    CHECK(count_columns(timeline, site) == timeline["columns"]);
    const auto& use = report.sites[site].time().total;
    const double width = timeline["column_seconds"];
    // Levels are rounded, which is off by less than a column here and there.
    CHECK(drawn_seconds(timeline, site, kCompute) == Approx(use.compute_seconds).margin(8 * width));
    CHECK(drawn_seconds(timeline, site, static_cast<std::size_t>(SpanCause::kWan)) ==
          Approx(use.seconds(SpanCause::kWan)).margin(8 * width));
  }
  CHECK(timeline["rounds"].size() == 4);
}

TEST_CASE("a window shows its time alone and what goes on now up to its end") {
  const auto run = watched_run();
  auto records = run.records(0);
  records.resize(4);  // run, plan, both steps: it waits
  const auto report = report_of({records});
  const double last = records.back().time;
  const auto timeline = timeline_json(report, 18, last + 9);
  CHECK(timeline["column_seconds"] == 0.05);
  CHECK(timeline["from"].get<double>() <= last + 9 - 18 + 0.05);
  CHECK(drawn_seconds(timeline, 0, static_cast<std::size_t>(SpanCause::kWait)) ==
        Approx(9).margin(0.06));
  CHECK(drawn_seconds(timeline, 0, kCompute) == Approx(1).margin(0.2));
  // The steps are older than this window.
  const auto later = timeline_json(report, 18, last + 100);
  CHECK(drawn_seconds(later, 0, kCompute) == 0);
  CHECK(drawn_seconds(later, 0, static_cast<std::size_t>(SpanCause::kWait)) ==
        Approx(18).margin(0.06));
  // A young run fills the drawing.
  CHECK(timeline_json(report, 3600, last + 40)["column_seconds"].get<double>() < 0.2);
}

TEST_CASE("a site that is gone does nothing up to the end of the timeline") {
  const auto run = watched_run();
  auto records = run.records(0);
  records.resize(3);  // run, plan, a step: it trains
  const auto report = report_of({records});
  const double now = records.back().time + 10;
  CHECK(drawn_seconds(timeline_json(report, 18, now), 0, kCompute) == Approx(10.5).margin(0.1));
  const std::vector<Alarm> other = {{AlarmKind::kSiteGone, "node2", ""},
                                    {AlarmKind::kSlowLink, "node1", ""}};
  CHECK(drawn_seconds(timeline_json(report, 18, now, other), 0, kCompute) ==
        Approx(10.5).margin(0.1));
  const std::vector<Alarm> gone = {{AlarmKind::kSiteGone, "node1", "node1 was lost"}};
  CHECK(drawn_seconds(timeline_json(report, 18, now, gone), 0, kCompute) ==
        Approx(0.5).margin(0.1));
}

TEST_CASE("the state says of each site whether it is gone") {
  const auto run = watched_run();
  auto lost = run.records(0);
  lost.pop_back();  // its end
  const auto report = report_of({lost, run.records(1)});
  const std::vector<Alarm> alarms = {{AlarmKind::kSiteGone, "node1", "node1 was lost"},
                                     {AlarmKind::kSiteGone, "node2", "node2 has ended: no memory"}};
  const auto gone = status_json(report, alarms, 1, run.start)["sites"];
  CHECK(gone[0]["is_gone"] == true);
  CHECK(gone[1]["is_gone"] == false);  // it says itself how it ended
  CHECK(status_json(report, {}, 1, run.start)["sites"][0]["is_gone"] == false);
}

TEST_CASE("rounds that the first site did not commit are on the timeline") {
  const auto run = watched_run();
  auto lost = run.records(0);
  lost.resize(lost.size() / 2);
  const auto report = report_of({lost, run.records(1)});
  CHECK(timeline_json(report, 0, run.start + 60)["rounds"].size() == 4);
}

TEST_CASE("curves and drawings have the colours of the report") {
  const auto run = watched_run();
  const auto report = report_of({run.records(0), run.records(1)});
  const auto json = charts_json(report);
  CHECK(json["charts"] == curves_of_run(report)["charts"]);
  CHECK_THAT(json["idle"].get<std::string>(), Catch::StartsWith("<div"));
  CHECK(json["legend"] == Json::parse(R"([{"kind":"validation","label":"validation, all sites"},
      {"kind":"site-0","label":"node1"},{"kind":"site-1","label":"node2"}])"));
  CHECK_THAT(json["idle"].get<std::string>(), Catch::Contains("node2"));
  CHECK(json["causes"][0] == Json({{"kind", "wait"}, {"label", "waiting for peers"}}));
}

TEST_CASE("a site that serves is on the timeline and not among the causes of idle time") {
  const auto run = watched_run();
  auto server = run.records(1);
  for (auto& record : server) {
    if (auto* span = std::get_if<SpanEvent>(&record.event)) span->cause = SpanCause::kServe;
  }
  const auto report = report_of({run.records(0), server});
  const auto html = html_report(report);
  const auto legend = html.find("<h2>Idle time</h2>");
  REQUIRE(legend != html.npos);
  const std::string serving = "<i class=\"serve\"></i>";
  CHECK(html.find(serving) < legend);
  CHECK(html.find(serving, legend) == html.npos);
  const auto charts = charts_json(report);
  for (const auto& cause : charts["causes"]) CHECK(cause["kind"] != "serve");
}

}  // namespace farstep
