#include "trainer/telemetry/site_progress.h"

#include "tests/support/catch.h"
#include "tests/trainer/telemetry/synthetic_run.h"

namespace farstep {

TEST_CASE("a site's activity follows from what its events say is over") {
  SyntheticRun run;
  run.step_seconds = {0.25};
  run.rounds = 1;
  run.steps = 2;
  SiteProgress site("node1");
  CHECK(site.activity_text() == "starting");
  std::vector<std::string> activities;
  for (const auto& record : run.records(0)) {
    site.update(record);
    activities.push_back(site.activity_text());
  }
  CHECK(activities == std::vector<std::string>{
                          "training", "training", "training", "waiting",  // run, plan, two steps
                          "sending", "sending", "sending", "sending",     // wait wan outer sync
                          "next round", "next round",                     // round and validation
                          "next round", "next round", "next round", "done"});
}

TEST_CASE("progress grows from nothing to all and the time left shrinks to none") {
  const SyntheticRun run;
  SiteProgress site("node3");
  CHECK(site.fraction() == 0);
  double fraction = 0;
  for (const auto& record : run.records(2)) {
    site.update(record);
    CHECK(site.fraction() >= fraction);
    fraction = site.fraction();
    const auto* round = std::get_if<RoundEvent>(&record.event);
    if (!round) continue;
    CHECK(fraction == Approx(double(round->round) / 10));
    REQUIRE(site.seconds_left());
    CHECK(*site.seconds_left() ==
          Approx(double(10 - round->round) * run.round_seconds()).epsilon(0.03));
  }
  CHECK(fraction == 1);
  CHECK_FALSE(site.seconds_left());
  CHECK(site.round() == run.rounds);
  CHECK(site.step() == run.steps);
  CHECK(site.local_steps() == run.steps);
}

TEST_CASE("a resumed site begins where it was and estimates from there") {
  SiteProgress site("node1");
  RunEvent run;
  run.rounds = 10;
  run.start_round = 5;
  run.start_step = 5;
  site.update({1000, "node1", run});
  site.update({1000, "node1", PlanEvent{.round = 6, .local_steps = 10}});
  CHECK(site.fraction() == Approx(0.55));
  CHECK(site.round() == 6);
  CHECK_FALSE(site.seconds_left());
  site.update({1010, "node1", StepEvent{6, 10, 1001, 9, 0, 3.5, 1, 1, 900, {}}});
  CHECK(*site.seconds_left() == Approx(80));  // 5 % in 10 s, 40 % to go
  CHECK(site.loss() == 3.5);
  CHECK(site.tokens_per_second() == Approx(100));
}

}  // namespace farstep
