#include "trainer/telemetry/idle.h"

#include "tests/support/catch.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/telemetry/abandoned.h"

namespace farstep {

TEST_CASE("hand-made events add up by cause and round") {
  const std::vector<Record> records = {
      {100, "a", RunEvent{}},
      {101, "a", SpanEvent{SpanCause::kEvaluate, 0, 100, 1}},
      {103.5, "a", StepEvent{1, 1, 101.5, 2, 0.5, 1, 1, 1, 10, {}}},
      {105.5, "a", StepEvent{1, 2, 103.5, 2, 0, 1, 1, 1, 10, {}}},
      {109.5, "a", SpanEvent{SpanCause::kWait, 1, 105.5, 4}},
      {110.5, "a", SpanEvent{SpanCause::kWan, 1, 109.5, 1}},
      {112, "a", SpanEvent{SpanCause::kWan, 2, 111, 1}},  // half a second is told by nothing
  };
  const auto time = account_time(records);
  CHECK(time.total.compute_seconds == 4);
  CHECK(time.total.seconds(SpanCause::kWait) == 4);
  CHECK(time.total.seconds(SpanCause::kWan) == 2);
  CHECK(time.total.seconds(SpanCause::kData) == 0.5);
  CHECK(time.total.seconds(SpanCause::kEvaluate) == 1);
  CHECK(time.total.seconds(SpanCause::kOuter) == 0);
  CHECK(time.total.idle_seconds() == 7.5);
  CHECK(time.total.total_seconds() == 11.5);
  CHECK(time.total.idle_fraction() == 7.5 / 11.5);
  CHECK(time.wall_seconds == 12);
  CHECK(time.unexplained_seconds() == 0.5);
  REQUIRE(time.rounds.size() == 3);
  CHECK(time.rounds.at(0).idle_seconds() == 1);
  CHECK(time.rounds.at(1).total_seconds() == 9.5);
  CHECK(time.rounds.at(2).total_seconds() == 1);
}

TEST_CASE("without losses wall time is that of the processes and not of the time between them") {
  const std::vector<Record> records = {
      {100, "a", RunEvent{}},
      {103, "a", StepEvent{1, 1, 100, 3, 0, 1, 1, 1, 10, {}}},
      {5000, "a", RunEvent{}},
      {5002, "a", StepEvent{1, 2, 5000, 2, 0, 1, 1, 1, 10, {}}},
  };
  const auto time = account_time(records);
  CHECK(time.wall_seconds == 5);
  CHECK(time.unexplained_seconds() == 0);
}

namespace {

Record begin(double time, int64_t round = 0) {
  RunEvent run;
  run.run = "r";
  run.start_round = round;
  return {time, "a", run};
}
Record save(double time, int64_t round) {
  return {time, "a", CheckpointEvent{.round = round, .step = 0, .folder = "f", .bytes = 1}};
}
Record step(double time, int64_t round) {
  return {time, "a", StepEvent{round, 1, time - 2, 2, 0, 1, 1, 1, 10, {}}};
}
Record end(double time, Outcome outcome) {
  return {time, "a", EndEvent{outcome, ""}};
}

SiteTime account_with_losses(const std::vector<Record>& file) {
  TimeAccount account;
  for (const auto& record : without_abandoned(file)) account.add(record);
  RunSeconds run;
  for (const auto& record : file) run.add(record);
  account.set_run_seconds(run.seconds());
  return account.time();
}

}  // namespace

TEST_CASE("an outage and the work before it that is done again are lost") {
  const std::vector<Record> file = {begin(100),    step(102, 1), save(103, 1), step(105, 2),
                                    begin(135, 1), step(137, 2), save(138, 2)};
  const auto time = account_with_losses(file);
  CHECK(time.wall_seconds == 38);
  CHECK(time.lost_seconds == 32);  // 2 s of round 2, and 30 s without a process
  CHECK(time.total.total_seconds() == 4);
  CHECK(time.unexplained_seconds() == 2);  // two checkpoints
}

TEST_CASE("a process that goes on further back loses the one between too") {
  const std::vector<Record> file = {begin(100),   step(102, 1),  save(102, 1),
                                    step(104, 2), begin(110, 1), step(112, 2),
                                    save(112, 2), begin(120, 1), step(122, 2)};
  const auto time = account_with_losses(file);
  CHECK(time.wall_seconds == 22);
  CHECK(time.lost_seconds == 18);
  CHECK(time.unexplained_seconds() == 0);
}

TEST_CASE("a pause on purpose is no failure but work that is done again after it is lost") {
  const auto lost_after = [](Outcome outcome) {
    return account_with_losses({begin(100), step(102, 1), save(102, 1), step(104, 2),
                                end(104, outcome), begin(904, 1), step(906, 2)})
        .lost_seconds;
  };
  CHECK(lost_after(Outcome::kInterrupted) == 2);
  CHECK(lost_after(Outcome::kDone) == 2);
  CHECK(lost_after(Outcome::kPeerLost) == 802);
  CHECK(lost_after(Outcome::kFailed) == 802);
}

TEST_CASE(
    "what a process does before its first checkpoint is lost with it and an earlier run is not") {
  CHECK(account_with_losses({begin(100), step(102, 1), begin(112), step(114, 1)}).lost_seconds ==
        12);
  const auto other =
      account_with_losses({begin(100), step(102, 1), save(102, 1), begin(112), step(114, 1)});
  CHECK(other.lost_seconds == 0);
  CHECK(other.wall_seconds == 2);
}

TEST_CASE("no events are no time") {
  const auto time = account_time({});
  CHECK(time.wall_seconds == 0);
  CHECK(time.total.idle_fraction() == 0);
  CHECK(time.rounds.empty());
}

TEST_CASE("the account of a run with known times is exact and complete") {
  const SyntheticRun run;
  for (std::size_t site = 0; site < run.step_seconds.size(); ++site) {
    const auto records = run.records(site);
    const auto time = account_time(records);
    const auto rounds = static_cast<double>(run.rounds);
    CHECK(time.total.compute_seconds == Approx(rounds * run.training_seconds(site)));
    CHECK(time.total.seconds(SpanCause::kWait) ==
          Approx(rounds * run.wait_seconds(site)).margin(1e-6));
    CHECK(time.total.seconds(SpanCause::kWan) == Approx(rounds * run.wan_seconds));
    CHECK(time.wall_seconds == Approx(rounds * run.round_seconds()));
    CHECK(time.unexplained_seconds() == Approx(0).margin(1e-4));
    TimeUse sum;
    for (const auto& [round, use] : time.rounds) sum += use;
    CHECK(sum.total_seconds() == Approx(time.total.total_seconds()));
  }
}

}  // namespace farstep
