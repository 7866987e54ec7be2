#include "trainer/telemetry/event_log.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr std::string_view kLine =
    R"({"event":"evaluation","time":1,"site":"a","round":1,"loss_sum":2.5,"tokens":3,"hits":null})"
    "\n";

void append(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a whole file is read without a note") {
  const TemporaryFolder folder;
  append(folder / "events.jsonl", kLine);
  append(folder / "events.jsonl", kLine);
  const auto log = read_event_log(folder / "events.jsonl");
  CHECK(log.records.size() == 2);
  CHECK(log.note.empty());
}

TEST_CASE("a file cut off anywhere in its last line loses that line and says so") {
  const TemporaryFolder folder;
  for (std::size_t length = 1; length < kLine.size(); ++length) {
    const auto file = folder / ("events" + std::to_string(length));
    append(file, kLine);
    append(file, kLine.substr(0, length));
    const auto log = read_event_log(file);
    CHECK(log.records.size() == 1);
    CHECK(log.note.find(file.string()) != log.note.npos);
  }
}

TEST_CASE("a corrupt line in the middle is an error with file and line") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  append(file, std::string(kLine) + "{\"event\":\"st\n" + std::string(kLine));
  CHECK_THROWS_WITH(read_event_log(file), Catch::Contains("events.jsonl:2: "));
  CHECK_THROWS_AS(read_event_log(file), DataError);
  CHECK_THROWS_AS(read_event_log(folder / "absent"), DataError);
}

TEST_CASE("a follower returns each event once when its line is complete") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  EventFollower follower(file);
  CHECK(follower.poll().empty());
  append(file, "");
  CHECK(follower.poll().empty());
  // In pieces of every size: a poll after each piece.
  for (std::size_t piece = 1; piece <= kLine.size(); piece += 7) {
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < kLine.size(); begin += piece) {
      CHECK(found == 0);
      append(file, kLine.substr(begin, piece));
      found += follower.poll().size();
    }
    CHECK(found == 1);
  }
  append(file, std::string(kLine) + std::string(kLine) + "{\"ev");
  CHECK(follower.poll().size() == 2);
}

TEST_CASE("a follower survives that an unfinished line is cut off") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  EventFollower follower(file);
  append(file, std::string(kLine) + "{\"event\":\"st");
  CHECK(follower.poll().size() == 1);
  std::filesystem::resize_file(file, kLine.size());
  CHECK(follower.poll().empty());
  append(file, kLine);
  CHECK(follower.poll().size() == 1);
}

TEST_CASE("a follower reports a corrupt line and a file that became shorter") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  EventFollower follower(file);
  append(file, std::string(kLine) + std::string(kLine));
  CHECK(follower.poll().size() == 2);
  append(file, "nonsense\n");
  CHECK_THROWS_WITH(follower.poll(), Catch::Contains("events.jsonl:3: "));
  std::filesystem::resize_file(file, kLine.size());
  CHECK_THROWS_AS(follower.poll(), DataError);
}

TEST_CASE("a long file comes in pieces and a line longer than a piece comes whole") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  std::string text;
  while (text.size() < 3'000'000) text += kLine;
  append(file, text);
  EventFollower follower(file);
  std::size_t found = 0;
  std::size_t pieces = 0;
  for (auto records = follower.poll_some(); !records.empty(); records = follower.poll_some()) {
    CHECK(records.size() * kLine.size() <= 1 << 20);
    found += records.size();
    ++pieces;
  }
  CHECK(pieces == 3);
  CHECK(found * kLine.size() == text.size());
  CHECK(EventFollower(file).poll().size() == found);

  const auto end =
      to_record({1, "a", EndEvent{Outcome::kFailed, std::string(2'500'000, 'x')}}).dump() + "\n";
  append(file, end + std::string(kLine));
  const auto rest = follower.poll();
  REQUIRE(rest.size() == 2);
  CHECK(std::get<EndEvent>(rest[0].event).message.size() == 2'500'000);
  CHECK(follower.note().empty());
}

TEST_CASE("a follower that passes over lines counts them and reads what comes then") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  EventFollower follower(file);
  follower.skip();
  append(file, "nonsense\n" + std::string(2'500'000, 'x') + "\n" + std::string(kLine.substr(0, 9)));
  follower.skip();
  append(file, std::string(kLine.substr(9)) + "{}\n");
  CHECK_THROWS_WITH(follower.poll(), Catch::Contains("events.jsonl:4: "));
}

}  // namespace farstep
