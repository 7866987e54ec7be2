#include "trainer/account/membership.h"

#include <fmt/ranges.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report_tables.h"
#include "trainer/report/report_text.h"

namespace farstep {

namespace {

// A run of three sites and 20 rounds of two steps.
SyntheticRun run_of_three() {
  SyntheticRun run;
  run.step_seconds = {0.5, 0.25, 0.5};
  run.rounds = 20;
  run.steps = 2;
  return run;
}

int64_t round_of(const Event& event) {
  if (const auto* step = std::get_if<StepEvent>(&event)) return step->round;
  if (const auto* span = std::get_if<SpanEvent>(&event)) return span->round;
  if (const auto* sync = std::get_if<SyncEvent>(&event)) return sync->round;
  if (const auto* plan = std::get_if<PlanEvent>(&event)) return plan->round;
  if (const auto* round = std::get_if<RoundEvent>(&event)) return round->round;
  if (const auto* share = std::get_if<EvaluationEvent>(&event)) return share->round;
  if (const auto* saved = std::get_if<CheckpointEvent>(&event)) return saved->round;
  return 0;
}

// The views of node2's losses in the rounds 5 and 12, and of its returns in 7 and 12, where node3
// is lost at the same sync.
const std::vector<ViewEvent> kViews = {
    {5, 2, {"node1", "node3"}, "node2", std::nullopt, "silent for 5 s"},
    {7, 3, {"node1", "node2", "node3"}, std::nullopt, "node2", std::nullopt},
    {11, 4, {"node1", "node3"}, "node2", std::nullopt, "out of <memory>"},
    {12, 5, {"node1", "node2", "node3"}, std::nullopt, "node2", std::nullopt},
    {12, 6, {"node1", "node2"}, "node3", std::nullopt, "silent for 6 s"}};

// Writes a site's file. It has the rounds in which the site was there, each with its views.
void write_site(const std::filesystem::path& folder, std::size_t site) {
  const auto run = run_of_three();
  const auto name = run.site_name(site);
  std::vector<Record> records;
  bool was_there = true;
  for (const auto& record : run.records(site)) {
    const int64_t round = round_of(record.event);
    const bool is_there =
        site == 0 ||
        (site == 1 && round != 5 && round != 6 && round != 7 && round != 11 && round != 12) ||
        (site == 2 && round < 12);
    const bool is_end = std::holds_alternative<EndEvent>(record.event) && site == 2;
    if (!is_there || is_end) {
      was_there = false;
      continue;
    }
    if (!was_there) {  // it came back in the round before
      auto start = std::get<RunEvent>(records.front().event);
      start.start_round = round - 2;
      start.sites = {"node1", "node2", "node3"};
      records.push_back({record.time, name, start});
      for (const auto& view : kViews) {
        if (view.round == round - 1) records.push_back({record.time, name, view});
      }
      was_there = true;
    }
    records.push_back(record);
    if (!std::holds_alternative<RoundEvent>(record.event)) continue;
    for (const auto& view : kViews) {
      const bool is_member = std::ranges::find(view.members, name) != view.members.end();
      if (view.round == round && is_member) records.push_back({record.time, name, view});
    }
  }
  write_events(folder / name / "events.jsonl", records);
}

std::string presence_text(const Membership& membership) {
  return fmt::format("{}", fmt::join(presence_lines(membership), " | "));
}

}  // namespace

TEST_CASE("a run of one generation says nothing of its membership") {
  const TemporaryFolder folder;
  run_of_three().write(folder.path());
  const auto report = build_report(folder.path());
  CHECK(membership_of(report).changes.empty());
  CHECK(membership_of(report).sites.empty());
  CHECK_THAT(report_text(report) + html_report(report), !Catch::Contains("took part"));
  CHECK_THAT(report_text(report) + html_report(report), !Catch::Contains("membership"));
  CHECK(report_json(report)["views"] == Json::array());
  CHECK(report_json(report)["presence"] == Json::array());
}

TEST_CASE("the report tells who took part in which rounds and why that changed") {
  const TemporaryFolder folder;
  for (const std::size_t site : {0, 1, 2}) write_site(folder.path(), site);
  const auto report = build_report(folder.path());
  const auto membership = membership_of(report);
  CHECK(presence_text(membership) ==
        "node1: 1 to 20 | node2: 1 to 4, 8 to 10, 13 to 20; 5 missed | node3: 1 to 11; 9 missed");
  REQUIRE(membership.changes.size() == kViews.size());
  const auto lines = change_lines(membership);
  CHECK(lines[0] == "round 5, generation 2: node2 was lost (silent for 5 s); node1, node3 went on");
  CHECK(lines[1] ==
        "round 7, generation 3: node2 joined, and trained from round 8 on; members node1, node2, "
        "node3");
  CHECK_THAT(report_text(report), Catch::Contains("node2: 1 to 4, 8 to 10, 13 to 20; 5 missed"));
  const auto page = html_report(report);
  CHECK_THAT(page, Catch::Contains("node2: rounds 8 to 10"));
  CHECK_THAT(page, Catch::Contains("node2 was lost (out of &lt;memory&gt;)"));
  const auto json = report_json(report);
  CHECK(json["views"].size() == kViews.size());
  CHECK(json["views"][0]["lost"] == "node2");
  CHECK(json["presence"][1] == Json({{"site", "node2"}, {"rounds", {{1, 4}, {8, 10}, {13, 20}}}}));
}

TEST_CASE("one site's folder tells of all as far as it was there") {
  const TemporaryFolder folder;
  for (const std::size_t site : {0, 1, 2}) write_site(folder.path(), site);
  const auto whole = presence_text(membership_of(build_report(folder.path())));
  CHECK(presence_text(membership_of(build_report(folder / "node1"))) == whole);
  // The rounds 7 and 12 are those in which it joined.
  CHECK(presence_text(membership_of(build_report(folder / "node2"))) ==
        "node1: 1 to 4, 7 to 10, 12 to 20 | node2: 1 to 4, 8 to 10, 13 to 20; 2 missed | "
        "node3: 1 to 4, 7 to 10; 9 missed | the events here are of rounds 1 to 4, 7 to 10, 12 to "
        "20 only");
}

TEST_CASE("means of a site that was away are over the rounds in which it was there") {
  const TemporaryFolder folder;
  for (const std::size_t site : {0, 1, 2}) write_site(folder.path(), site);
  const auto report = build_report(folder.path());
  CHECK(report.sites[0].rounds_worked == 20);
  CHECK(report.sites[1].rounds_worked == 15);
  CHECK(report.sites[2].rounds_worked == 11);
  const auto table = idle_table(report);
  const auto training = std::ranges::find_if(
      table.rows, [](const auto& row) { return row.cells.front() == "training"; });
  REQUIRE(training != table.rows.end());
  // Two steps a round, of 0.5 s and of 0.25 s.
  CHECK(std::stod(training->cells[1]) == Approx(1));
  CHECK(std::stod(training->cells[2]) == Approx(0.5));
  CHECK(std::stod(training->cells[3]) == Approx(1));
}

TEST_CASE("a validation by the members of its round counts") {
  const TemporaryFolder folder;
  for (const std::size_t site : {0, 1, 2}) write_site(folder.path(), site);
  const auto losses = build_report(folder.path()).validation_losses;
  // In round 7 and 12 node2's share is missing in these files: it had joined.
  for (int64_t round = 1; round <= 20; ++round) {
    INFO(round);
    CHECK(losses.contains(round) == (round != 7 && round != 12));
  }
}

TEST_CASE("sites stand in the order of the run also when few were there at their start") {
  const TemporaryFolder folder;
  auto run = run_of_three();
  for (const std::size_t site : {0, 1, 2}) {
    auto records = run.records(site);
    if (site == 2) {  // it came back when node2 was lost
      auto start = std::get<RunEvent>(records.front().event);
      start.sites = {"node1", "node3"};
      start.site_id = 1;
      records.front().event = start;
    }
    // Folders in another order than the sites.
    write_events(folder / std::to_string(9 - site) / "events.jsonl", records);
  }
  const auto report = build_report(folder.path());
  CHECK(report.site_names == Names{"node1", "node2", "node3"});
  for (const std::size_t site : {0, 1, 2}) CHECK(report.sites[site].site == run.site_name(site));
  CHECK(facts(report).front() == "20 of 20 rounds at 3 sites");
}

TEST_CASE("of many changes the newest are listed") {
  Membership membership;
  for (int64_t i = 1; i <= 300; ++i) {
    membership.changes.push_back({i, i + 1, {"node1"}, "node2", std::nullopt, "silent"});
  }
  const auto lines = change_lines(membership);
  CHECK(lines.size() == 51);
  CHECK(lines.front() == "the first 250 are left out");
  CHECK_THAT(lines.back(), Catch::StartsWith("round 300, generation 301"));
}

}  // namespace farstep
