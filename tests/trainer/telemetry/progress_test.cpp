#include "trainer/telemetry/progress.h"

#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// A stdio stream that keeps what is written to it.
class MemoryFile {
 public:
  MemoryFile() : file_(::open_memstream(&text_, &size_)) {}
  ~MemoryFile() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() const { return file_; }
  std::string text() const { return {text_, size_}; }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Columns on the screen: without escape sequences, and a character once.
std::size_t columns_of(const std::string& text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      columns += (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    }
  }
  return columns;
}

SyntheticRun small_run() {
  SyntheticRun run;
  run.step_seconds = {0.25, 0.5};
  run.rounds = 3;
  run.steps = 2;
  return run;
}

}  // namespace

TEST_CASE("off a terminal a site and round is one plain line") {
  const MemoryFile out;
  const FakeClock clock;
  ProgressBoard board(out.file(), false, clock, {"node1", "node2"});
  for (std::size_t site = 0; site < 2; ++site) {
    for (const auto& record : small_run().records(site)) {
      board.update(record);
      board.draw();
    }
  }
  board.finish();
  const auto text = out.text();
  CHECK(count(text, "\n") == 8);  // three rounds and an end a site
  CHECK(text.find("node1: round 2/3 done, loss ") != text.npos);
  CHECK(text.find("waited 0.5 s\n") != text.npos);
  CHECK(text.find("node2: done\n") != text.npos);
  CHECK(text.find('\x1b') == text.npos);
}

TEST_CASE("on a terminal the board is redrawn in place ten times a second at most") {
  const MemoryFile out;
  FakeClock clock;
  ProgressBoard board(out.file(), true, clock, {"node1", "node2"});
  for (int i = 0; i < 95; ++i) {
    board.draw();
    clock.advance(0.01);
  }
  const auto text = out.text();
  const auto draws = count(text, "node1");
  CHECK(draws >= 9);
  CHECK(draws <= 10);
  CHECK(count(text, "\x1b[2A") == draws - 1);
  CHECK(count(text, "\n") == 2 * draws);
}

TEST_CASE("a board of more sites than the screen has lines says how many are left out") {
  const MemoryFile out;
  const FakeClock clock;
  std::vector<std::string> sites;
  for (int i = 0; i < 30; ++i) sites.push_back("node" + std::to_string(i));
  ProgressBoard board(out.file(), true, clock, sites);
  board.draw();
  CHECK(count(out.text(), "\n") == 23);
  CHECK(out.text().find("and 8 sites more\n") != std::string::npos);
}

TEST_CASE("a line fits any width and shows the more the wider it is") {
  SiteProgress site("node1");
  for (const auto& record : small_run().records(0)) {
    if (std::holds_alternative<EndEvent>(record.event)) break;
    site.update(record);
    for (std::size_t columns = 1; columns < 200; ++columns) {
      CHECK(columns_of(board_line(site, 5, columns)) <= columns);
    }
  }
  const auto wide = board_line(site, 5, 120);
  for (const char* detail : {"node1", "3/3", "step", "loss", "tok/s", "next round"}) {
    CHECK(wide.find(detail) != wide.npos);
  }
  auto images = small_run().records(0);
  std::get<RunEvent>(images.front().event).unit = "images";
  SiteProgress of_images("node1");
  for (const auto& record : images) of_images.update(record);
  CHECK(board_line(of_images, 5, 120).find("img/s") != std::string::npos);
  const auto usual = board_line(site, 5, 79);
  for (const char* detail : {"node1", "3/3", "loss", "tok/s", "next round"}) {
    CHECK(usual.find(detail) != usual.npos);
  }
}

TEST_CASE("a record of a site that is not on the board is a bug") {
  const MemoryFile out;
  const FakeClock clock;
  ProgressBoard board(out.file(), true, clock, {"node1"});
  CHECK_THROWS_AS(board.update({0, "node9", EndEvent{}}), InternalError);
}

TEST_CASE("a bar is drawn on a terminal and ends as a line anywhere") {
  FakeClock clock;
  const MemoryFile terminal;
  ProgressBar bar(terminal.file(), true, clock, "tokenizing");
  for (int i = 0; i <= 100; ++i) {
    bar.show(i / 100.0, "3 of 6 files");
    clock.advance(0.01);
  }
  CHECK(count(terminal.text(), "3 of 6 files") <= 11);
  CHECK(terminal.text().find(" %  3 of 6 files") != std::string::npos);
  CHECK(count(terminal.text(), "\n") == 0);
  bar.finish("6 files");
  CHECK(terminal.text().ends_with("tokenizing: 6 files\n"));

  const MemoryFile file;
  ProgressBar plain(file.file(), false, clock, "tokenizing");
  plain.show(0.5, "3 of 6 files");
  plain.finish("6 files");
  CHECK(file.text() == "tokenizing: 6 files\n");
}

}  // namespace farstep
