#include "trainer/report/html_report.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/report/report_charts.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

std::string page_of(const SyntheticRun& run) {
  const TemporaryFolder folder;
  run.write(folder.path());
  return html_report(build_report(folder.path()));
}

bool has(const std::string& page, const std::string& text) {
  return page.find(text) != page.npos;
}

// Every element that is opened is closed, in the right order.
void check_well_formed(const std::string& page) {
  std::vector<std::string> open;
  for (auto at = page.find('<'); at != page.npos; at = page.find('<', at + 1)) {
    const auto close = page.find('>', at);
    REQUIRE(close != page.npos);
    const auto tag = page.substr(at + 1, close - at - 1);
    const auto name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag[0] == '!' || tag.back() == '/' || name == "meta") continue;
    if (tag[0] == '/') {
      REQUIRE_FALSE(open.empty());
      REQUIRE("/" + open.back() == name);
      open.pop_back();
    } else {
      open.push_back(name);
    }
  }
  CHECK(open.empty());
}

}  // namespace

TEST_CASE("the page is whole and takes nothing from the network") {
  const auto page = page_of({});
  check_well_formed(page);
  CHECK(page.starts_with("<!doctype html>"));
  for (const char* forbidden : {"http:", "https:", "<script", "src=", "@import", "url(", "<link"}) {
    INFO(forbidden);
    CHECK_FALSE(has(page, forbidden));
  }
  CHECK(has(page, "prefers-color-scheme: dark"));
}

TEST_CASE("the page shows every site and cause that took time and no other") {
  const auto page = page_of({});
  for (const char* site : {"node1", "node2", "node3", "node4"}) CHECK(has(page, site));
  CHECK(has(page, "waiting for peers"));
  CHECK_FALSE(has(page, ">recovery<"));
  CHECK(has(page, "node3, round 7\ntraining 10.40 s\nwaiting for peers 14.60 s"));
}

TEST_CASE("the idle bars have the shares of the idle table") {
  const TemporaryFolder folder;
  const SyntheticRun run;
  for (std::size_t site = 0; site < run.step_seconds.size(); ++site) {
    auto records = run.records(site);
    records.back().time += 100;  // which no step or span explains
    write_events(folder.path() / run.site_name(site) / "events.jsonl", records);
  }
  const auto report = build_report(folder.path());
  const auto chart = idle_chart(report);
  for (const auto& site : report.sites) {
    CHECK(site.time().unexplained_seconds() == Approx(100).margin(1e-3));
    CHECK(has(chart, ">" + percent_text(site.time().total.idle_fraction()) + "<"));
  }
}

TEST_CASE("the page draws the learning rate and the gradient norm of steps that have one") {
  const auto page = page_of({});
  CHECK(has(page, "aria-label=\"Learning rate by round\""));
  CHECK(has(page, "aria-label=\"Gradient norm by round\""));
  CHECK(has(page, ">4e-4<"));
  const SyntheticRun run;
  auto records = run.records(0);
  for (auto& record : records) {
    if (auto* step = std::get_if<StepEvent>(&record.event)) step->gradient_norm.reset();
  }
  const TemporaryFolder folder;
  write_events(folder.path() / "node1" / "events.jsonl", records);
  const auto without = html_report(build_report(folder.path()));
  CHECK(has(without, "Learning rate by round"));
  CHECK_FALSE(has(without, "Gradient norm by round"));
}

TEST_CASE("text from a run is escaped") {
  SyntheticRun run;
  run.rounds = run.steps = 1;
  run.name = "<b>\"R&D'</b>";
  const auto page = page_of(run);
  CHECK_FALSE(has(page, "<b>\"R"));
  CHECK(has(page, "&lt;b&gt;&quot;R&amp;D&#39;&lt;/b&gt;"));
  check_well_formed(page);
}

TEST_CASE("the page has the settings of the newest process of any site") {
  SyntheticRun run;
  run.step_seconds = {0.5, 0.25};
  run.rounds = run.steps = 1;
  CHECK_FALSE(has(page_of(run), "Settings"));
  const TemporaryFolder folder;
  for (std::size_t site = 0; site < 2; ++site) {
    auto records = run.records(site);
    auto start = std::get<RunEvent>(records.front().event);
    start.settings = {"outer.rounds=1"};
    records.front().event = start;
    if (site == 1) {
      start.settings = {"outer.rounds=2", "name=<b>&"};
      start.default_settings = {"seed=1"};
      start.rounds = 2;
      start.start_round = 1;
      records.push_back({records.back().time + 10, records.back().site, start});
    }
    write_events(folder.path() / run.site_name(site) / "events.jsonl", records);
  }
  const auto report = build_report(folder.path());
  CHECK(report_json(report)["settings"] == Json{"outer.rounds=2", "name=<b>&"});
  CHECK(report_json(report)["default_settings"] == Json{"seed=1"});
  const auto page = html_report(report);
  check_well_formed(page);
  CHECK(has(page, ">outer.rounds</td><td class=\"left\">2</td>"));
  CHECK(has(page, ">name</td><td class=\"left\">&lt;b&gt;&amp;</td>"));
  CHECK(has(page, ">seed</td><td class=\"left\">1</td>"));
  CHECK(has(page, "1 of 2 rounds"));
}

TEST_CASE("runs of any shape have a page") {
  for (const std::size_t sites : {1, 2, 40}) {
    for (const int64_t rounds : {0, 1, 3}) {
      SyntheticRun run;
      run.step_seconds.assign(sites, 0.25);
      run.rounds = rounds;
      run.steps = 2;
      const auto page = page_of(run);
      check_well_formed(page);
      CHECK(page.size() < 1'000'000);
      CHECK_FALSE(has(page, "nan"));
      CHECK_FALSE(has(page, "inf\""));
    }
  }
}

TEST_CASE("more sites than there are colours share one") {
  SyntheticRun run;
  run.rounds = run.steps = 2;
  run.step_seconds.assign(8, 0.25);
  const auto few = page_of(run);
  CHECK(has(few, "class=\"curve site-7\""));
  CHECK(has(few, "<i class=\"stroke site-7\"></i>node8"));
  CHECK_FALSE(has(few, "\"curve any-site\""));
  run.step_seconds.assign(9, 0.25);
  const auto many = page_of(run);
  CHECK(has(many, "class=\"curve any-site\""));
  CHECK(has(many, "training, a line a site"));
  CHECK_FALSE(has(many, "\"curve site-0\""));
}

TEST_CASE("a run without validation has no line for it in the legend") {
  SyntheticRun run;
  run.rounds = 0;
  CHECK_FALSE(has(page_of(run), "validation, all sites"));
  run.rounds = 1;
  CHECK(has(page_of(run), "validation, all sites"));
}

TEST_CASE("a long run has a small page") {
  SyntheticRun run;
  run.rounds = 700;
  run.steps = 2;
  run.step_seconds = {0.25, 0.5};
  CHECK(page_of(run).size() < 200'000);
}

TEST_CASE("the time between two processes is cut out of the timeline") {
  SyntheticRun run;
  run.step_seconds = {0.25};
  run.rounds = 2;
  run.steps = 4;
  auto records = run.records(0);
  CHECK_FALSE(has(html_report([&] {
                    const TemporaryFolder folder;
                    write_events(folder / "node1" / "events.jsonl", records);
                    return build_report(folder.path());
                  }()),
                  "class=\"cut\""));
  // The same again a day later, resumed after the first round.
  auto later = SyntheticRun{run};
  later.start += 86'400;
  auto resumed = later.records(0);
  std::get<RunEvent>(resumed.front().event).start_round = 1;
  std::erase_if(resumed, [](const auto& record) {
    const auto* step = std::get_if<StepEvent>(&record.event);
    const auto* span = std::get_if<SpanEvent>(&record.event);
    const auto* round = std::get_if<RoundEvent>(&record.event);
    return (step && step->round == 1) || (span && span->round == 1) || (round && round->round == 1);
  });
  records.insert(records.end(), resumed.begin(), resumed.end());
  const TemporaryFolder folder;
  write_events(folder / "node1" / "events.jsonl", records);
  const auto page = html_report(build_report(folder.path()));
  CHECK(has(page, "class=\"cut\""));
  CHECK_FALSE(has(page, " h</text>"));
}

}  // namespace farstep
