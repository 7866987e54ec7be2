// The report for programs: its members, and the history that it has.
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/report/report.h"

namespace farstep {

namespace {

std::vector<std::string> names_of(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [name, value] : json.items()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("the JSON report has the members of the contract in their order") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.write(folder.path());
  const auto json = report_json(build_report(folder.path()));
  CHECK(names_of(json) == std::vector<std::string>{"rounds", "sites", "final_loss",
                                                   "training_losses", "validations", "unreadable",
                                                   "wan_bytes_sent", "noise_scales", "sync_changes",
                                                   "views", "presence", "outliers", "rises",
                                                   "settings", "default_settings"});
  REQUIRE(json["sites"].size() == 4);
  CHECK(names_of(json["sites"][2]) == std::vector<std::string>{"site",
                                                               "trains",
                                                               "steps",
                                                               "tokens",
                                                               "merged_tokens",
                                                               "compute_seconds",
                                                               "wait_seconds",
                                                               "wan_seconds",
                                                               "serve_seconds",
                                                               "other_seconds",
                                                               "idle_fraction",
                                                               "hidden_wan_seconds",
                                                               "exposed_wan_share",
                                                               "uplink_bits_per_second",
                                                               "links",
                                                               "lost_seconds",
                                                               "unaccounted_seconds",
                                                               "wall_seconds",
                                                               "outcome",
                                                               "message"});
}

TEST_CASE("the JSON report has the losses of every round and how each site ended") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.step_seconds = {0.25, 0.5};
  run.rounds = 3;
  run.steps = 1;
  auto killed = run.records(1);
  killed.pop_back();
  write_events(folder / "node1" / "events.jsonl", run.records(0));
  write_events(folder / "node2" / "events.jsonl", killed);
  const auto report = build_report(folder.path());
  const auto json = report_json(report);
  REQUIRE(json["training_losses"].size() == 3);
  REQUIRE(json["validations"].size() == report.validation_losses.size());
  for (const auto& row : json["training_losses"]) {
    CHECK(row["loss"] == report.train_losses.at(row["round"].get<int64_t>()));
  }
  for (const auto& row : json["validations"]) {
    CHECK(row["loss"] == report.validation_losses.at(row["round"].get<int64_t>()));
    CHECK_FALSE(row.contains("accuracy"));
  }
  CHECK(json["sites"][0]["outcome"] == "done");
  CHECK(json["sites"][1]["outcome"].is_null());
}

}  // namespace farstep
