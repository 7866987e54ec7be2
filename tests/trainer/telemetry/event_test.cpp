#include "trainer/telemetry/event.h"

#include <limits>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

// One of each kind, with no field at its default.
std::vector<Event> one_of_each() {
  RunEvent run;
  run.version = "1.2.3";
  run.run = "a \"run\"";
  run.site_id = 1;
  run.sites = {"node1", "node2"};
  run.devices = {"cpu x1"};
  run.parameters = run.rounds = run.generation = run.start_round = run.start_step =
      run.start_fragments = 7;
  run.sequence_length = 128;
  run.unit = "images";
  run.clock_offset_seconds = -0.125;
  run.rate_note = "it rises again";
  run.settings = {"outer.rounds=7", "name=a \"run\""};
  run.default_settings = {"seed=1"};
  return {run,
          StepEvent{3, 4, 1.5e9, 0.1, 0.01, 7.25, 0.5, 1e-4, 512, {0.1, 0.05}},
          SpanEvent{SpanCause::kRecovery, 3, 1.5e9, 0.1},
          SyncEvent{3, 1, 0.5, 2.5, 0.25, 1.5, 1000},
          RoundEvent{3, 1, 25, 4, 2, 51200, 0.25, "00112233445566ff", 1, 2, 3, 4, 6.5, -0.5, 8, 16},
          LinkEvent{3, "node1", 1, 2, 3, 4, 0.5, 8e6, 0.08},
          LinkEvent{3, std::nullopt, 1, 2, 3, 4, 0.5, 8e6, 0.08},
          SyncChangeEvent{3, outer_optimizer::CodecKind::kInt4, 8, 12, {0.25, 0.75}, "a slow line"},
          OutlierEvent{5, 1, "node2", true, "has a value of 1e+30"},
          RiseEvent{5, 4, 7.5, 2, 5.25, false, 2},
          ViewEvent{3, 2, {"node1", "node2"}, "node3", std::nullopt, "silent for 5 s"},
          ViewEvent{4, 3, {"node1", "node2", "node3"}, std::nullopt, "node3", std::nullopt},
          EvaluationEvent{3, 1234.5, 99, 42},
          CheckpointEvent{3, 2, "round-00003", 4096},
          EndEvent{Outcome::kPeerLost, "node3 is \"silent\" since 5 s"}};
}

std::string line_of(const Event& event) {
  return to_record({1.5e9 + 0.25, "node2", event}).dump();
}

}  // namespace

TEST_CASE("every event is read back as it was written") {
  for (const auto& event : one_of_each()) {
    const auto line = line_of(event);
    const auto record = parse_record(line, "events.jsonl", 1);
    CHECK(record.site == "node2");
    CHECK(record.time == 1.5e9 + 0.25);
    CHECK(record.event.index() == event.index());
    CHECK(line_of(record.event) == line);
    CHECK(line.find('\n') == line.npos);
  }
}

TEST_CASE("a record begins with its kind and time and site") {
  CHECK(line_of(SpanEvent{SpanCause::kWan, 2, 10, 0.5}) ==
        R"({"event":"span","time":1500000000.25,"site":"node2","cause":"wan","round":2,)"
        R"("start":10.0,"seconds":0.5})");
}

TEST_CASE("a record without any one of its fields or with one more is refused") {
  for (const auto& event : one_of_each()) {
    const auto whole = to_record({1, "node1", event});
    for (const auto& [name, value] : whole.items()) {
      // These may be left out.
      static const std::set<std::string> kOptional = {"message", "rate_note", "saturated",
                                                      "settings", "default_settings"};
      if (kOptional.contains(name)) continue;
      auto part = whole;
      part.erase(name);
      INFO(part.dump());
      CHECK_THROWS_AS(parse_record(part.dump(), "events.jsonl", 1), DataError);
    }
    auto more = whole;
    more["surprise"] = 1;
    CHECK_THROWS_AS(parse_record(more.dump(), "events.jsonl", 1), DataError);
  }
}

TEST_CASE("what is no record is refused with file and line") {
  for (
      const char* line :
      {"", "{", "null", "[]", "17", "{}", R"({"event":7})", R"({"event":"dance"})",
       R"({"event":"end","time":"now","site":"a","outcome":"done","message":""})",
       R"({"event":"end","time":1,"site":"a","outcome":"lost","message":""})",
       R"({"event":"evaluation","time":1,"site":"a","round":-1,"loss_sum":1,"tokens":1,"hits":1})",
       R"({"event":"evaluation","time":1,"site":"a","round":1,"loss_sum":null,"tokens":1,"hits":1})"}) {
    INFO(line);
    CHECK_THROWS_WITH(parse_record(line, "run/events.jsonl", 12),
                      Catch::StartsWith("run/events.jsonl:12: "));
    CHECK_THROWS_AS(parse_record(line, "run/events.jsonl", 12), DataError);
  }
}

// A coordinator keeps records of all sites, and reports print them.
TEST_CASE("the texts of a record are lines that a terminal only shows") {
  RunEvent run;
  run.version = "1";
  run.sequence_length = run.rounds = 1;
  run.run = "a\x1b]0;owned\x07";
  run.sites = run.devices = {"b\xc2\x9b[2J"};
  const auto line = to_record({1, "node1", run}).dump();
  const auto read = parse_record(line, "f", 1);
  CHECK(std::get<RunEvent>(read.event).run == "a\\x1b]0;owned\\x07");
  CHECK(std::get<RunEvent>(read.event).devices.front() == "b\\xc2\\x9b[2J");
  const auto end =
      parse_record(to_record({1, "node1", EndEvent{Outcome::kFailed, "one\ntwo"}}).dump(), "f", 1);
  CHECK(std::get<EndEvent>(end.event).message == "one two");
  // What is refused is quoted.
  for (const std::string& wrong :
       {std::string(R"({"event":"e\u001b","time":1,"site":"a"})"),
        std::string(R"({"event":"checkpoint","time":1,"site":"a","\u001b[2J":1})")}) {
    try {
      parse_record(wrong, "f", 1);
      FAIL("it is taken");
    } catch (const DataError& error) {
      CHECK(std::string(error.what()).find('\x1b') == std::string::npos);
    }
  }
}

TEST_CASE("a number that JSON cannot hold is not written") {
  StepEvent step{1, 1, 0, 0, 0, 0, 0, 0, 0};
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    step.loss = bad;
    CHECK_THROWS_AS(to_record({0, "node1", step}), InternalError);
  }
}

TEST_CASE("docs/events.md explains every cause of idle time and every outcome") {
  const auto page = read_file(source_folder() / "docs/events.md");
  for (const auto cause : enum_names(SpanCause{})) {
    CHECK(page.find("| `" + std::string(cause) + "` |") != page.npos);
  }
  for (const auto outcome : enum_names(Outcome{})) {
    CHECK(page.find("`" + std::string(outcome) + "`") != page.npos);
  }
}

}  // namespace farstep
