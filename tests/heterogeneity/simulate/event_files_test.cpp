#include "heterogeneity/simulate/event_files.h"

#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/report/report.h"

namespace farstep::heterogeneity {

namespace {

Scenario busy_scenario(std::size_t count) {
  auto json = scenario_json({}, "hybrid");
  for (std::size_t i = 0; i < count; ++i) {
    auto site = site_json("s" + std::to_string(i), 0.1 + 0.05 * static_cast<double>(i));
    site["jitter"] = 0.05;
    site["evaluate_seconds"] = 0.5;
    site["checkpoint_seconds"] = 0.25;
    json["sites"].push_back(site);
  }
  if (count > 2) json["sites"][2]["joins_at_round"] = 3;
  json["rounds"] = 5;
  json["plan"]["base_steps"] = 20;
  json["parameters"] = 10'000;
  json["sequence_length"] = 16;
  json["outer_seconds"] = 0.125;
  json["link"] = {{"rtt_seconds", 0.1}, {"bandwidth_bits_per_second", 1e6}};
  return scenario_of(json);
}

SimulationResult simulate_to(const std::filesystem::path& folder, const Scenario& scenario) {
  Simulation simulation(scenario, "test.json");
  SimulationResult result(scenario);
  EventFiles files(folder, scenario, "1.2.3");
  for (int64_t round = 0; round < scenario.rounds; ++round) {
    const auto& simulated = simulation.next_round();
    result.add(simulated);
    files.write(simulated);
  }
  return result;
}

}  // namespace

TEST_CASE("the report on a simulation's events shows the simulation's figures") {
  for (const std::size_t count : {1, 2, 3}) {
    const TemporaryFolder folder;
    const auto result = simulate_to(folder / "run", busy_scenario(count));
    const auto report = build_report(folder / "run");
    CHECK(report.run == "test (simulated)");
    CHECK(report.rounds_done == 5);
    CHECK(report.notes.empty());
    REQUIRE(report.sites.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& site = report.sites[i];
      const auto& simulated = result.sites[i];
      CHECK(site.site == simulated.site);
      CHECK(site.time().total.compute_seconds == Approx(simulated.time.compute_seconds));
      for (std::size_t cause = 0; cause < kSpanCauses; ++cause) {
        CHECK(site.time().total.seconds_by_cause[cause] ==
              Approx(simulated.time.seconds_by_cause[cause]).margin(1e-9));
      }
      CHECK(site.time().total.seconds(SpanCause::kWait) / 5 ==
            Approx(result.idle_seconds(simulated)).margin(1e-9));
      // Steps and spans fill the time without a rest.
      CHECK(site.time().unexplained_seconds() == Approx(0).margin(1e-5));
      CHECK(site.end->outcome == Outcome::kDone);
      CHECK(site.tokens > 0);
    }
    const auto json = report_json(report);
    CHECK(json["rounds"] == simulation_json(result)["rounds"]);
  }
}

TEST_CASE("every round's plan is recorded before its steps") {
  const TemporaryFolder folder;
  const auto scenario = busy_scenario(3);
  simulate_to(folder / "run", scenario);
  Simulation simulation(scenario, "test.json");
  const auto report = build_report(folder / "run");
  for (int64_t number = 1; number <= 5; ++number) {
    for (const auto& site : simulation.next_round().sites) {
      std::optional<PlanEvent> plan;
      bool has_begun = false;
      report.sites[site.site].visit_records([&](const Record& record) {
        const auto* step = std::get_if<StepEvent>(&record.event);
        has_begun = has_begun || (step != nullptr && step->round == number && step->step == 1);
        const auto* event = std::get_if<PlanEvent>(&record.event);
        if (event != nullptr && !has_begun) plan = *event;
      });
      REQUIRE(plan);
      CHECK(plan->round == number);
      CHECK(plan->local_steps == site.steps());
      CHECK(plan->reason == site.plan.reason);
      CHECK(plan->step_seconds == site.plan.step_seconds);
    }
  }
}

TEST_CASE("the bytes of the events are those of the direct exchange") {
  const TemporaryFolder folder;
  simulate_to(folder / "run", busy_scenario(2));
  const auto report = build_report(folder / "run");
  // 2 (N - 1) / N S a site and round.
  for (const auto& site : report.sites) CHECK(site.traffic.wan_bytes_sent == 5 * 40'000);
}

TEST_CASE("the same scenario gives the same bytes") {
  const TemporaryFolder folder;
  const auto scenario = busy_scenario(3);
  simulate_to(folder / "a", scenario);
  simulate_to(folder / "b", scenario);
  for (const std::string site : {"s0", "s1", "s2"}) {
    CHECK(read_file(folder / "a" / site / "events.jsonl") ==
          read_file(folder / "b" / site / "events.jsonl"));
  }
}

TEST_CASE("a folder that holds something is not written to") {
  const TemporaryFolder folder;
  simulate_to(folder / "a", busy_scenario(1));
  CHECK_THROWS_AS(simulate_to(folder / "a", busy_scenario(1)), ConfigError);
  CHECK_THROWS_WITH(simulate_to(folder / "a", busy_scenario(1)), Catch::Contains("is not empty"));
}

}  // namespace farstep::heterogeneity
