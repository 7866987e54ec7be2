#include "wan/membership/records.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/system/file.h"

namespace farstep::wan {

namespace {

namespace fs = std::filesystem;

void append(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

std::string lines(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) {
    text += "{\"line\":" + std::to_string(i) + std::string(static_cast<std::size_t>(i % 90), 'x') +
            "}\n";
  }
  return text;
}

// Sends pieces until there are none.
void copy_all(RecordsReader& site, RecordsFolder& folder) {
  while (const auto piece = site.next(folder.state("a"))) {
    const auto count = std::ranges::count(piece->text, '\n');
    CHECK(piece->text.size() <= (count == 1 ? kMostRecordBytes : kMostRecordsBytes));
    folder.take("a", *piece);
  }
}

}  // namespace

TEST_CASE("a copy becomes the file however its pieces come") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  const auto copy = folder / "copies" / "a" / "events.jsonl";
  RecordsReader site(file);
  std::mt19937 random(3);
  std::optional<RecordsFolder> coordinator(std::in_place, folder / "copies");
  CHECK_FALSE(site.next(coordinator->state("a")));
  const auto text = lines(1, 6000);
  std::vector<RecordsMessage> sent;
  for (std::size_t written = 0; written < text.size();) {
    const auto piece = text.substr(written, 1 + random() % 9000);
    append(file, piece);
    written += piece.size();
    if (const auto message = site.next(coordinator->state("a"))) {
      sent.push_back(*message);
      if (random() % 4 != 0) coordinator->take("a", *message);  // else it is lost on its way
      // Any that was sent before may come again.
      if (random() % 3 == 0) coordinator->take("a", sent[random() % sent.size()]);
    }
    if (random() % 10 == 0) coordinator.emplace(folder / "copies");  // it was restarted
    if (fs::exists(copy)) {
      const auto known = read_file(copy);
      REQUIRE(text.starts_with(known));
      REQUIRE((known.empty() || known.back() == '\n'));
      REQUIRE(coordinator->state("a").bytes == static_cast<int64_t>(known.size()));
    }
  }
  copy_all(site, *coordinator);
  CHECK(read_file(copy) == text);
}

TEST_CASE("a file that was replaced is copied anew and half a line is dropped") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  const auto copy = folder / "copies" / "a" / "events.jsonl";
  write_file(file, lines(1, 50));
  {
    RecordsFolder coordinator(folder / "copies");
    RecordsReader site(file);
    copy_all(site, coordinator);
  }
  append(copy, "{\"half");  // it was killed
  for (const auto& text : {lines(7, 9), lines(7, 300)}) {
    write_file(file, text);
    RecordsFolder coordinator(folder / "copies");
    RecordsReader site(file);
    copy_all(site, coordinator);
    CHECK(read_file(copy) == text);
  }
}

TEST_CASE("a line longer than a piece is copied whole") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  const auto copy = folder / "copies" / "a" / "events.jsonl";
  const auto long_line = [](std::size_t bytes) { return std::string(bytes - 1, 'y') + "\n"; };
  for (const bool is_first : {false, true}) {
    std::string text = is_first ? "" : lines(1, 3);
    for (const auto bytes : {kMostRecordsBytes, kMostRecordsBytes + 1, kMostRecordBytes}) {
      text += long_line(bytes) + lines(4, 5);
    }
    text += long_line(kMostRecordBytes);
    write_file(file, text);
    RecordsReader site(file);
    {
      RecordsFolder coordinator(folder / "copies");
      copy_all(site, coordinator);
      CHECK(read_file(copy) == text);
    }
    append(copy, std::string(kMostRecordsBytes + 9, 'h'));  // it was killed
    RecordsFolder coordinator(folder / "copies");
    CHECK(coordinator.state("a").bytes == static_cast<int64_t>(text.size()));
    CHECK(read_file(copy) == text);
    append(file, lines(6, 6));
    copy_all(site, coordinator);
    CHECK(read_file(copy) == text + lines(6, 6));
  }
}

TEST_CASE("a line beyond the limit ends the copy with one warning") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  RecordsFolder coordinator(folder / "copies");
  for (const auto& before : {std::string(), lines(1, 3)}) {
    const LogCapture log;
    write_file(file, before + std::string(kMostRecordBytes - 1, 'y'));
    RecordsReader site(file);
    copy_all(site, coordinator);
    CHECK(log.text().empty());  // it may be a line that is being written
    append(file, "yy\n" + lines(4, 5));
    for (int beat = 0; beat < 3; ++beat) copy_all(site, coordinator);
    const auto text = log.text();
    CHECK_THAT(text, Catch::Contains(file.string() + ": the line at byte " +
                                     std::to_string(before.size()) + " is longer than 1048576"));
    CHECK(std::ranges::count(text, '\n') == 1);
    CHECK(coordinator.state("a").bytes == static_cast<int64_t>(before.size()));
  }
}

TEST_CASE("a piece that no site makes ends the copy with a warning") {
  for (const auto& piece :
       {std::string("half"), std::string(), std::string(kMostRecordBytes, 'y') + "\n"}) {
    const TemporaryFolder folder;
    const LogCapture log;
    RecordsFolder coordinator(folder / "copies");
    coordinator.take("a", {.position = 0, .text = "x\n"});
    for (int times = 0; times < 2; ++times) coordinator.take("a", {.position = 2, .text = piece});
    CHECK(coordinator.state("a").bytes == -1);
    CHECK(read_file(folder / "copies" / "a" / "events.jsonl") == "x\n");
    CHECK_THAT(log.text(), Catch::Contains("the records of a are not copied any more"));
    CHECK(std::ranges::count(log.text(), '\n') == 1);
    coordinator.take("b", {.position = 0, .text = "x\n"});
    CHECK(coordinator.state("b").bytes == 2);
  }
}

TEST_CASE("without a folder nothing is kept and no name leads out of one") {
  const TemporaryFolder folder;
  write_file(folder / "events.jsonl", lines(1, 3));
  RecordsReader site(folder / "events.jsonl");
  RecordsFolder none("");
  CHECK(none.state("a").bytes == -1);
  CHECK_FALSE(site.next(none.state("a")));
  RecordsFolder coordinator(folder / "copies");
  for (const char* name : {"", ".", "..", "../b", "a/b", ".hidden"}) {
    CHECK(coordinator.state(name).bytes == -1);
    coordinator.take(name, {.position = 0, .text = "x\n"});
  }
  CHECK_FALSE(fs::exists(folder / "copies"));
}

TEST_CASE("a folder that cannot be written ends the copies of the site and nothing else") {
  const TemporaryFolder folder;
  write_file(folder / "copies", "a file");
  const LogCapture log;
  RecordsFolder coordinator(folder / "copies");
  CHECK(coordinator.state("a").bytes == -1);
  coordinator.take("a", {.position = 0, .text = "x\n"});
  CHECK_THAT(log.text(), Catch::Contains("the records of a are not copied"));
}

}  // namespace farstep::wan
