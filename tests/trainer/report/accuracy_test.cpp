// The accuracy of a run that counts hits, in every form of its report.
#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report.h"
#include "trainer/report/report_tables.h"
#include "trainer/report/report_text.h"

namespace farstep {

namespace {

bool has(const std::string& page, const std::string& text) {
  return page.find(text) != page.npos;
}

}  // namespace

TEST_CASE("the accuracy is the share of the hits of all sites and the counts are images") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.step_seconds = {0.25, 0.5};
  run.rounds = 3;
  run.steps = 1;
  for (std::size_t site = 0; site < 2; ++site) {
    auto records = run.records(site);
    auto& start = std::get<RunEvent>(records.front().event);
    start.unit = "images";
    start.sequence_length = 1;
    for (auto& record : records) {
      auto* share = std::get_if<EvaluationEvent>(&record.event);
      if (share == nullptr) continue;
      share->tokens = site == 0 ? 2 : 6;
      share->hits = site == 0 ? 2 : share->round;
      if (share->round == 3 && site == 1) share->hits.reset();  // does not count them
    }
    write_events(folder / run.site_name(site) / "events.jsonl", records);
  }
  const auto report = build_report(folder.path());
  CHECK(report.unit() == "images");
  CHECK(report.validation_accuracies.at(1) == 3.0 / 8);
  CHECK(report.validation_accuracies.at(2) == 0.5);
  CHECK_FALSE(report.validation_accuracies.contains(3));
  CHECK(report_json(report)["final_accuracy"] == 0.5);
  const auto text = report_text(report);
  CHECK_THAT(text, Catch::Contains("accuracy 37.50 % → 50.00 %"));
  CHECK_THAT(text, Catch::Contains("parameters, images"));
  CHECK_THAT(text, Catch::Contains("images/s") && !Catch::Contains("tokens"));
  const auto table = round_table(report, 10);
  const auto column = std::ranges::find(table.header, "accuracy") - table.header.begin();
  REQUIRE(column < std::ssize(table.header));
  for (const auto& row : table.rows) REQUIRE(row.cells.size() == table.header.size());
  CHECK(table.rows[0].cells[static_cast<std::size_t>(column)] == "37.50 %");
  CHECK(table.rows[2].cells[static_cast<std::size_t>(column)] == "-");
}

TEST_CASE("a site that validates for all gives the loss of the run") {
  for (const bool is_told : {true, false}) {
    const TemporaryFolder folder;
    SyntheticRun run;
    run.step_seconds = {0.25, 0.5};
    run.rounds = 2;
    run.steps = 1;
    for (std::size_t site = 0; site < 2; ++site) {
      auto records = run.records(site);
      if (site == 1) {
        std::get<RunEvent>(records.front().event).reads_data = !is_told;
        std::erase_if(records, [](const Record& record) {
          return std::holds_alternative<EvaluationEvent>(record.event);
        });
      }
      for (auto& record : records) {
        auto* share = std::get_if<EvaluationEvent>(&record.event);
        if (share == nullptr) continue;
        share->loss_sum = 12;
        share->tokens = 8;
      }
      write_events(folder / run.site_name(site) / "events.jsonl", records);
    }
    // Else the other site's share is missing.
    const auto losses = build_report(folder.path()).validation_losses;
    CHECK(losses.contains(2) == is_told);
    if (is_told) CHECK(losses.at(2) == 1.5);
  }
}

TEST_CASE("the page shows the accuracy of a run that has one and no other") {
  SyntheticRun run;
  run.step_seconds = {0.25};
  run.rounds = 2;
  run.steps = 1;
  auto records = run.records(0);
  for (auto& record : records) {
    if (auto* share = std::get_if<EvaluationEvent>(&record.event)) {
      share->tokens = 8;
      share->hits = 3 + share->round;
    }
  }
  const TemporaryFolder folder;
  write_events(folder / "node1" / "events.jsonl", records);
  const auto page = html_report(build_report(folder.path()));
  CHECK(has(page, "<b>62.50 %</b><span>accuracy</span>"));
  CHECK(has(page, "<h2>Accuracy (%)</h2>"));
  CHECK(has(page, "validation after round 1: 50.00 %"));
  const TemporaryFolder without;
  run.write(without.path());
  CHECK_FALSE(has(html_report(build_report(without.path())), "ccuracy"));
}

}  // namespace farstep
