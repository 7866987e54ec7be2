#include "trainer/telemetry/abandoned.h"

#include "tests/support/catch.h"
#include "tests/trainer/telemetry/synthetic_run.h"

namespace farstep {

namespace {

RunEvent start_at(int64_t round, int64_t step) {
  RunEvent run;
  run.version = "1";
  run.run = "run";
  run.start_round = round;
  run.start_step = step;
  return run;
}

// Events as short words: "run", "2.3" a step, "wait2" a span, "round2", "eval2", "end".
std::string words(const std::vector<Record>& records) {
  std::string text;
  for (const auto& record : records) {
    const auto& event = record.event;
    text += text.empty() ? "" : " ";
    if (std::holds_alternative<RunEvent>(event)) text += "run";
    if (std::holds_alternative<EndEvent>(event)) text += "end";
    if (std::holds_alternative<CheckpointEvent>(event)) text += "saved";
    if (const auto* step = std::get_if<StepEvent>(&event)) {
      text += fmt::format("{}.{}", step->round, step->step);
    } else if (const auto* span = std::get_if<SpanEvent>(&event)) {
      text += fmt::format("{}{}", name_of(span->cause), span->round);
    } else if (const auto* sync = std::get_if<SyncEvent>(&event)) {
      text += fmt::format("sync{}:{}", sync->round, sync->fragment);
    } else if (const auto* round = std::get_if<RoundEvent>(&event)) {
      text += fmt::format("round{}", round->round);
    } else if (const auto* view = std::get_if<ViewEvent>(&event)) {
      text += fmt::format("view{}", view->round);
    } else if (const auto* evaluation = std::get_if<EvaluationEvent>(&event)) {
      text += fmt::format("eval{}", evaluation->round);
    }
  }
  return text;
}

Record step(int64_t round, int64_t step) {
  return {0, "a", StepEvent{.round = round, .step = step}};
}
Record span(SpanCause cause, int64_t round) {
  return {0, "a", SpanEvent{cause, round}};
}
Record run(int64_t round, int64_t step) {
  return {0, "a", start_at(round, step)};
}
Record synced(int64_t round, int64_t fragment) {
  return {0, "a", SyncEvent{.round = round, .fragment = fragment}};
}
Record committed(int64_t round) {
  RoundEvent event;
  event.round = round;
  return {0, "a", event};
}
Record evaluated(int64_t round) {
  return {0, "a", EvaluationEvent{round}};
}
Record saved(int64_t round) {
  return {0, "a", CheckpointEvent{round, 0, "folder", 1}};
}
Record end() {
  return {0, "a", EndEvent{Outcome::kInterrupted, ""}};
}

// Two rounds of two steps, and one step of the third.
std::vector<Record> first_process() {
  return {run(0, 0),
          step(1, 1),
          step(1, 2),
          span(SpanCause::kWait, 1),
          committed(1),
          evaluated(1),
          saved(1),
          step(2, 1),
          span(SpanCause::kData, 2),
          step(2, 2),
          span(SpanCause::kWait, 2),
          committed(2),
          evaluated(2),
          step(3, 1),
          span(SpanCause::kCheckpoint, 3),
          saved(2),
          end()};
}

std::string after_resume(int64_t round, int64_t steps) {
  auto records = first_process();
  records.push_back(run(round, steps));
  return words(without_abandoned(records));
}

}  // namespace

TEST_CASE("a site that resumes after a fragment keeps what belongs to its sync") {
  const std::vector<Record> before = {run(0, 0),    step(1, 1),
                                      step(1, 2),   span(SpanCause::kWan, 1),
                                      synced(1, 0), step(1, 3),
                                      step(1, 4),   span(SpanCause::kWan, 1),
                                      synced(1, 1), span(SpanCause::kData, 1),
                                      committed(1)};
  struct Row {
    int64_t steps, fragments;
    std::string kept;
  };
  const std::vector<Row> table = {
      {2, 0, "run 1.1 1.2 run"},
      {2, 1, "run 1.1 1.2 wan1 sync1:0 run"},
      {3, 1, "run 1.1 1.2 wan1 sync1:0 1.3 run"},
      {4, 1, "run 1.1 1.2 wan1 sync1:0 1.3 1.4 run"},
      {4, 2, "run 1.1 1.2 wan1 sync1:0 1.3 1.4 wan1 sync1:1 run"},
  };
  for (const auto& row : table) {
    auto records = before;
    auto resumed = start_at(0, row.steps);
    resumed.start_fragments = row.fragments;
    records.push_back({0, "a", resumed});
    CHECK(words(without_abandoned(records)) == row.kept);
  }
}

TEST_CASE("a resumed run keeps the links of its rounds and the change that its next round has") {
  const std::vector<Record> before = {run(0, 0),
                                      step(1, 1),
                                      committed(1),
                                      {0, "a", LinkEvent{.round = 1}},
                                      {0, "a", SyncChangeEvent{.round = 2}},
                                      step(2, 1),
                                      committed(2),
                                      {0, "a", LinkEvent{.round = 2}},
                                      {0, "a", SyncChangeEvent{.round = 3}}};
  for (const auto& [round, kept] : {std::pair{1, 5}, {2, 9}}) {
    auto records = before;
    records.push_back(run(round, 0));
    CHECK(std::ssize(without_abandoned(records)) == kept + 1);
  }
}

TEST_CASE("resuming at the end of a round drops what followed it") {
  CHECK(after_resume(1, 0) == "run 1.1 1.2 wait1 round1 eval1 saved run");
  CHECK(after_resume(2, 0) ==
        "run 1.1 1.2 wait1 round1 eval1 saved 2.1 data2 2.2 wait2 round2 eval2 run");
}

TEST_CASE("resuming within a round keeps the steps that were done and their spans") {
  CHECK(after_resume(1, 1) == "run 1.1 1.2 wait1 round1 eval1 saved 2.1 run");
  // All local steps done and the sync abandoned: its wait is gone with it.
  CHECK(after_resume(1, 2) == "run 1.1 1.2 wait1 round1 eval1 saved 2.1 data2 2.2 run");
  CHECK(after_resume(2, 1) ==
        "run 1.1 1.2 wait1 round1 eval1 saved 2.1 data2 2.2 wait2 round2 eval2 3.1 run");
}

TEST_CASE("resuming where nothing was abandoned drops nothing") {
  auto records = first_process();
  records.push_back(committed(3));
  const auto whole = words(records);
  records.push_back(run(3, 0));
  CHECK(words(without_abandoned(records)) == whole + " run");
}

TEST_CASE("the round in which a site was lost does not count when it comes back") {
  // Lost in round 3; the state that it took is that after round 5.
  CHECK(after_resume(5, 0) ==
        "run 1.1 1.2 wait1 round1 eval1 saved 2.1 data2 2.2 wait2 round2 eval2 run");
  // It attended round 6, trained in 7, was lost in 8 and came back once more.
  auto records = first_process();
  for (const auto& record :
       {run(5, 0), span(SpanCause::kWait, 6),
        Record{0, "a", ViewEvent{6, 3, {"a", "b"}, std::nullopt, "a", std::nullopt}}, evaluated(6),
        step(7, 1), committed(7), span(SpanCause::kEvaluate, 7), step(8, 1), run(11, 0)}) {
    records.push_back(record);
  }
  CHECK(words(without_abandoned(records)) ==
        "run 1.1 1.2 wait1 round1 eval1 saved 2.1 data2 2.2 wait2 round2 eval2 "
        "run wait6 view6 eval6 7.1 round7 evaluate7 run");
}

TEST_CASE("a resume before a change of the membership drops it") {
  std::vector<Record> records = {run(0, 0), step(1, 1), committed(1)};
  records.push_back({0, "a", ViewEvent{1, 2, {"a"}, "b", std::nullopt, "silent"}});
  const auto whole = words(records);
  for (const auto& record : {step(2, 1), run(1, 0)}) records.push_back(record);
  CHECK(words(without_abandoned(records)) == whole + " run");
  records.push_back(run(0, 1));
  CHECK(words(without_abandoned(records)) == "run 1.1 run");
}

TEST_CASE("a fresh run in the same folder drops everything before it") {
  CHECK(after_resume(0, 0) == "run");
}

TEST_CASE("a second resume further back drops the first one too") {
  auto records = first_process();
  for (const auto& record : {run(2, 0), step(3, 1), step(3, 2), committed(3), run(1, 1)}) {
    records.push_back(record);
  }
  CHECK(words(without_abandoned(records)) == "run 1.1 1.2 wait1 round1 eval1 saved 2.1 run");
}

TEST_CASE("resuming at any step and redoing the rest counts every step once") {
  SyntheticRun synthetic;
  synthetic.step_seconds = {0.25};
  synthetic.rounds = 3;
  synthetic.steps = 3;
  const auto whole = synthetic.records(0);
  for (std::size_t stop = 1; stop < whole.size(); ++stop) {
    for (int64_t round = 0; round < 3; ++round) {
      for (int64_t step = 0; step < 3; ++step) {
        // The second process redoes all from (round, step) on; a round has a plan and 12 more.
        const auto resumed = whole.begin() + 1 + round * 13 + (step == 0 ? 0 : step + 1);
        if (resumed - whole.begin() > std::ptrdiff_t(stop)) continue;
        std::vector<Record> records(whole.begin(), whole.begin() + std::ptrdiff_t(stop));
        records.push_back({0, "node1", start_at(round, step)});
        records.insert(records.end(), resumed, whole.end());
        const auto kept = without_abandoned(records);
        std::string steps;
        for (const auto& record : kept) {
          if (!std::holds_alternative<RunEvent>(record.event)) steps += words({record}) + " ";
        }
        std::string expected;
        for (const auto& record : whole) {
          if (!std::holds_alternative<RunEvent>(record.event)) expected += words({record}) + " ";
        }
        CHECK(steps == expected);
      }
    }
  }
}

TEST_CASE("a search that has forgotten records finds the same place or says that it cannot") {
  auto records = first_process();
  const std::vector<Record> later = {run(2, 0),
                                     step(3, 1),
                                     span(SpanCause::kWait, 3),
                                     synced(3, 0),
                                     step(3, 2),
                                     committed(3),
                                     {0, "a", LinkEvent{.round = 3}},
                                     {0, "a", SyncChangeEvent{.round = 4}},
                                     step(4, 1),
                                     span(SpanCause::kData, 4),
                                     {0, "a", ViewEvent{4, 3, {"a"}, "b", std::nullopt, "silent"}},
                                     step(5, 1),
                                     synced(5, 0)};
  records.insert(records.end(), later.begin(), later.end());
  std::size_t found = 0;
  for (int64_t round = 0; round < 8; ++round) {
    for (const int64_t step : {0, 1, 2}) {
      for (const int64_t fragments : {0, 1}) {
        auto start = start_at(round, step);
        start.start_fragments = fragments;
        for (std::size_t length = 0; length <= records.size(); ++length) {
          const auto before = without_abandoned(
              {records.begin(), records.begin() + static_cast<std::ptrdiff_t>(length)});
          KeptSearch whole(start);
          for (const auto& record : before) whole.add(record);
          REQUIRE(whole.kept());
          for (std::size_t forgotten = 0; forgotten <= before.size(); ++forgotten) {
            PastRecords past;
            for (std::size_t i = 0; i < forgotten; ++i) past.add(before[i]);
            KeptSearch search(start, past);
            for (std::size_t i = forgotten; i < before.size(); ++i) search.add(before[i]);
            if (begins_anew(start)) {
              REQUIRE(search.kept() == 0);
            } else if (search.kept()) {
              REQUIRE(forgotten + *search.kept() == *whole.kept());
              ++found;
            } else {
              REQUIRE(forgotten > 0);
            }
            // What lies before the place is found without it, but for the round of the place.
            if (*whole.kept() < forgotten) REQUIRE((begins_anew(start) || !search.kept()));
          }
        }
      }
    }
  }
  CHECK(found > 1000);
}

}  // namespace farstep
