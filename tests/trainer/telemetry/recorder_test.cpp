#include "trainer/telemetry/recorder.h"

#include <fstream>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/telemetry/event_log.h"

namespace farstep {

TEST_CASE("a record carries the site and the time at which it was written") {
  const TemporaryFolder folder;
  FakeClock clock(100);
  Recorder recorder(folder / "run" / "node1", "node1", clock);
  clock.advance(5);
  recorder.record(EvaluationEvent{1, 2.5, 3});
  const auto log = read_event_log(folder / "run" / "node1" / "events.jsonl");
  REQUIRE(log.records.size() == 1);
  CHECK(log.records[0].time == 105);
  CHECK(log.records[0].site == "node1");
}

TEST_CASE("a span is recorded once when it ends by itself or by finish") {
  const TemporaryFolder folder;
  FakeClock clock(100);
  Recorder recorder(folder.path(), "node1", clock);
  {
    const auto span = recorder.span(SpanCause::kOuter, 4);
    clock.advance(2);
  }
  {
    auto span = recorder.span(SpanCause::kWait, 5);
    clock.advance(3);
    CHECK(span.finish() == 3);
    clock.advance(1);
    CHECK(span.finish() == 3);
  }
  const auto log = read_event_log(folder / "events.jsonl");
  REQUIRE(log.records.size() == 2);
  const auto& outer = std::get<SpanEvent>(log.records[0].event);
  CHECK((outer.cause == SpanCause::kOuter && outer.round == 4));
  CHECK((outer.start == 100 && outer.seconds == 2));
  const auto& wait = std::get<SpanEvent>(log.records[1].event);
  CHECK((wait.cause == SpanCause::kWait && wait.start == 102 && wait.seconds == 3));
}

TEST_CASE("a resumed site goes on in its file and cuts off an unfinished line") {
  const TemporaryFolder folder;
  const FakeClock clock;
  Recorder(folder.path(), "node1", clock).record(EvaluationEvent{1, 2.5, 3});
  std::ofstream(folder / "events.jsonl", std::ios::app) << R"({"event":"step","time":1)";
  CHECK_FALSE(read_event_log(folder / "events.jsonl").note.empty());
  Recorder(folder.path(), "node1", clock).record(EvaluationEvent{2, 2.5, 3});
  const auto log = read_event_log(folder / "events.jsonl");
  CHECK(log.records.size() == 2);
  CHECK(log.note.empty());
}

TEST_CASE("a file that holds nothing but an unfinished line is emptied") {
  const TemporaryFolder folder;
  std::ofstream(folder / "events.jsonl") << "{\"eve";
  const FakeClock clock;
  const Recorder recorder(folder.path(), "node1", clock);
  CHECK(read_file(folder / "events.jsonl").empty());
}

TEST_CASE("threads may record at once") {
  const TemporaryFolder folder;
  const RealClock clock;
  Recorder recorder(folder.path(), "node1", clock);
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&recorder, thread] {
      for (int64_t i = 0; i < 100; ++i) recorder.record(EvaluationEvent{thread, 0.5, i});
    });
  }
  for (auto& thread : threads) thread.join();
  const auto log = read_event_log(folder / "events.jsonl");
  REQUIRE(log.records.size() == 400);
  std::array<int64_t, 4> next{};
  double time = 0;
  for (const auto& record : log.records) {
    const auto& event = std::get<EvaluationEvent>(record.event);
    CHECK(event.tokens == next[static_cast<std::size_t>(event.round)]++);
    CHECK(record.time >= time);
    time = record.time;
  }
}

TEST_CASE("bytes that are no text do not spoil the file") {
  const TemporaryFolder folder;
  const FakeClock clock;
  Recorder(folder.path(), "node1", clock).record(EndEvent{Outcome::kFailed, "bad \xff name"});
  CHECK(read_event_log(folder / "events.jsonl").records.size() == 1);
}

TEST_CASE("a write that fails is thrown by its record or by the next after a span") {
  const TemporaryFolder folder;
  const FakeClock clock;
  Recorder recorder(folder.path(), "node1", clock);
  recorder.record(EvaluationEvent{1, 2.5, 3});
  {
    const FileSizeLimit limit(150);  // the next line does not fit
    const auto span = recorder.span(SpanCause::kOuter, 1);
  }
  CHECK_THROWS_WITH(recorder.record(EvaluationEvent{2, 2.5, 3}), Catch::Contains("events.jsonl"));
  CHECK_THROWS_AS(recorder.record(EvaluationEvent{3, 2.5, 3}), DataError);
  CHECK(read_event_log(folder / "events.jsonl").records.size() == 1);
}

TEST_CASE("a place that cannot be written is an error at once") {
  const TemporaryFolder folder;
  const FakeClock clock;
  std::filesystem::create_directory(folder / "events.jsonl");
  CHECK_THROWS_AS(Recorder(folder.path(), "node1", clock), DataError);
  std::ofstream(folder / "file") << "";
  CHECK_THROWS_AS(Recorder(folder / "file", "node1", clock), DataError);
}

}  // namespace farstep
