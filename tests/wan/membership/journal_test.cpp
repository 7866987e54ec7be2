#include "wan/membership/journal.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/wan/roster/table.h"
#include "trainer/base/system/file.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// The state in the exchange of round 2, and the run that it belongs to.
struct Sample {
  Sample() {
    table.join();
    table.run_round(1);
    table.receive("a", PutMessage{"key \"of\" a", "00ff"});
    table.receive("b", PutMessage{"of nothing", ""});
    for (const auto* site : {"a", "b"}) table.receive(site, arrival(2));
    state = table.roster.state();
  }

  Table table{{"a", "b"}};
  RosterState state;
};

std::string refusal_of(const std::string& text, const ServedRun& run) {
  try {
    journal_state(text, run, "the file");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a journal that is read is the one that was written") {
  Sample sample;
  const auto text = journal_text(sample.state, sample.table.run);
  const auto read = journal_state(text, sample.table.run, "the file");
  CHECK(to_json(read) == to_json(sample.state));
  REQUIRE(read.run);
  CHECK(read.run->arrivals.size() == 2);
  const RosterState joining{.term = 3, .run = {}};
  const auto fresh = journal_text(joining, sample.table.run);
  CHECK(to_json(journal_state(fresh, sample.table.run, "the file")) == to_json(joining));
}

TEST_CASE("a journal with any byte changed or missing is damaged, or none") {
  Sample sample;
  const auto text = journal_text(sample.state, sample.table.run);
  const auto title_size = std::string("farstep coordinator journal 1 ").size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const int flip : {1, 0x20, 0x80}) {
      auto damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto refusal = refusal_of(damaged, sample.table.run);
      const std::string expected = i < title_size ? "delete it" : "damaged";
      if (refusal.starts_with("the file: ") && refusal.find(expected) < refusal.size()) continue;
      FAIL("byte " << i << " flipped by " << flip << ": '" << refusal << "'");
    }
    if (refusal_of(text.substr(0, i), sample.table.run).empty()) FAIL("cut at " << i);
  }
  CHECK_FALSE(refusal_of(text + " ", sample.table.run).empty());
}

TEST_CASE("a journal of another run is refused") {
  Sample sample;
  const auto text = journal_text(sample.state, sample.table.run);
  auto other = sample.table.run;
  SECTION("another setting") {
    other.config["outer"]["rounds"] = 11;
  }
  SECTION("other sites") {
    other.sites.push_back("c");
  }
  SECTION("more sites wanted") {
    other.min_sites = 1;
  }
  CHECK_THAT(refusal_of(text, other),
             Catch::Contains("belongs to another run") && Catch::Contains("delete it"));
}

TEST_CASE("a state that cannot be is refused even with the right checksum") {
  Sample sample;
  auto& run = *sample.state.run;
  SECTION("a member that is no site") {
    run.progress.members[1] = "x";
  }
  SECTION("a member twice") {
    run.progress.members[1] = "a";
  }
  SECTION("a seat of another site") {
    run.seats[0].site = "x";
  }
  SECTION("too few seats") {
    run.seats.pop_back();
  }
  SECTION("one arrival is missing") {
    run.arrivals.pop_back();
  }
  SECTION("a connection that is no number") {
    run.seats[0].connection = "xy";
  }
  SECTION("a verdict that is no message") {
    run.verdict = "over";
  }
  SECTION("generation 0") {
    run.progress.generation = 0;
  }
  CHECK_THROWS_AS(
      journal_state(journal_text(sample.state, sample.table.run), sample.table.run, "the file"),
      DamagedJournal);
}

TEST_CASE("a damaged journal is set aside, and another one begins") {
  const TemporaryFolder folder;
  Sample sample;
  auto text = journal_text(sample.state, sample.table.run);
  text.back() = 'x';
  write_file(folder / "journal", text);
  LogCapture log;
  {
    Journal journal(folder / "journal", sample.table.run);
    CHECK_FALSE(journal.start().run);
    CHECK_THAT(log.text(), Catch::Contains("journal is damaged") &&
                               Catch::Contains("journal.damaged") && Catch::Contains("--resume"));
    CHECK(read_file(folder / "journal.damaged") == text);
    journal.write(sample.state);
  }
  CHECK(Journal(folder / "journal", sample.table.run).start().run);
}

TEST_CASE("each start with a journal is a new term") {
  const TemporaryFolder folder;
  const auto file = folder / "new folder" / "journal";
  Sample sample;
  for (int64_t term = 1; term <= 3; ++term) {
    Journal journal(file, sample.table.run);
    CHECK(journal.start().term == term);
    CHECK(journal.start().run.has_value() == (term > 1));
    sample.state.term = term;
    journal.write(sample.state);
  }
  Journal journal(file, sample.table.run);
  for (int i = 0; i < 2; ++i) {
    journal.remove();
    CHECK_FALSE(std::filesystem::exists(file));
  }
}

TEST_CASE("a journal is written only when the state is another") {
  const TemporaryFolder folder;
  Sample sample;
  Journal journal(folder / "journal", sample.table.run);
  journal.write(sample.state);
  std::filesystem::remove(folder / "journal");
  journal.write(sample.state);
  CHECK_FALSE(std::filesystem::exists(folder / "journal"));
  ++sample.state.run->progress.generation;
  journal.write(sample.state);
  CHECK(std::filesystem::exists(folder / "journal"));
}

TEST_CASE("two coordinators cannot use one journal") {
  const TemporaryFolder folder;
  Sample sample;
  {
    const Journal first(folder / "journal", sample.table.run);
    CHECK_THROWS_WITH(Journal(folder / "journal", sample.table.run),
                      Catch::Contains("another coordinator uses this journal"));
  }
  CHECK_NOTHROW(Journal(folder / "journal", sample.table.run));
}

TEST_CASE("a refused journal stays as it is and is free again") {
  const TemporaryFolder folder;
  Sample sample;
  write_file(folder / "journal", "farstep");
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH(Journal(folder / "journal", sample.table.run),
                      Catch::Contains((folder / "journal").string()));
  }
  CHECK(read_file(folder / "journal") == "farstep");
}

namespace {

// A kept journal, and a disk that takes it or does not.
struct Keeper {
  void save() { journal.save(sample.state); }
  // A state that has to be written.
  void save_another() {
    ++sample.state.run->progress.generation;
    save();
  }
  // The temporary file cannot be written where a folder is.
  void fill_disk() { std::filesystem::create_directory(partial); }
  void free_disk() { std::filesystem::remove(partial); }
  // How many lines the log has got since the last call.
  std::ptrdiff_t new_lines() {
    const auto text = log.text();
    const auto lines = std::ranges::count(text, '\n');
    return lines - std::exchange(seen_lines, lines);
  }

  TemporaryFolder folder;
  std::filesystem::path file = folder / "journal", partial = folder / "journal.partial";
  Sample sample;
  FakeClock clock;
  KeptJournal journal{file, sample.table.run, clock};
  LogCapture log;
  std::ptrdiff_t seen_lines = 0;
};

}  // namespace

TEST_CASE("a journal that a nearly full disk takes now and then is logged twice in all") {
  Keeper keeper;
  keeper.save();
  CHECK(std::filesystem::exists(keeper.file));
  for (int i = 0; i < 50; ++i) {
    keeper.fill_disk();
    keeper.clock.advance(1);
    keeper.save_another();
    CHECK_FALSE(std::filesystem::exists(keeper.file));  // an old one is worse than none
    keeper.save();  // the same state, which is still not on the disk
    CHECK_FALSE(std::filesystem::exists(keeper.file));
    keeper.free_disk();
    keeper.clock.advance(1);
    keeper.save();
    CHECK(journal_state(read_file(keeper.file), keeper.sample.table.run, "the file")
              .run->progress.generation == keeper.sample.state.run->progress.generation);
    CHECK(keeper.new_lines() == (i == 0 ? 1 : 0));
  }
  CHECK_THAT(keeper.log.text(), Catch::Contains("journal.partial: cannot be written") &&
                                    Catch::Contains("the run ends with this process"));
  keeper.clock.advance(58);
  keeper.save();
  CHECK(keeper.new_lines() == 0);
  keeper.clock.advance(1);
  keeper.save();
  CHECK(keeper.new_lines() == 1);
  CHECK_THAT(keeper.log.text(), Catch::Contains("written again"));
  keeper.save_another();
  CHECK(keeper.new_lines() == 0);
  // A fault after that is news.
  keeper.fill_disk();
  keeper.save_another();
  CHECK(keeper.new_lines() == 1);
}

TEST_CASE("a journal that can neither be written nor removed says so once") {
  Keeper keeper;
  keeper.fill_disk();
  // A folder with a file in it, in the journal's place.
  std::filesystem::create_directory(keeper.file);
  write_file(keeper.file / "x", "");
  for (int i = 0; i < 10; ++i) keeper.save_another();
  CHECK(keeper.new_lines() == 2);
  CHECK_THAT(keeper.log.text(), Catch::Contains("delete it, as it is old"));
}
