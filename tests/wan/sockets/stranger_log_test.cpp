#include "wan/sockets/stranger_log.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/log_capture.h"

namespace farstep::wan {
namespace {

int64_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST_CASE("warnings of one kind have one line in ten seconds and the number of the others") {
  FakeClock clock(100);
  StrangerLog log("coordinator", clock);
  const LogCapture captured;
  for (int i = 0; i < 273; ++i) log.warn("dropped a message", "number " + std::to_string(i));
  CHECK(lines_of(captured.text()) == 1);
  CHECK_THAT(captured.text(), Catch::Contains("coordinator: dropped a message: number 0\n"));
  clock.advance(9.9);
  log.tick();
  CHECK(lines_of(captured.text()) == 1);
  clock.advance(0.1);
  log.tick();
  CHECK(lines_of(captured.text()) == 2);
  CHECK_THAT(captured.text(),
             Catch::Contains("coordinator: dropped a message: 272 more times in 10 s\n"));
}

TEST_CASE("a flood for an hour has at most a line in ten seconds") {
  FakeClock clock;
  StrangerLog log("coordinator", clock);
  const LogCapture captured;
  for (int second = 0; second < 3600; ++second) {
    for (int i = 0; i < 20; ++i) log.warn("dropped a message", "x");
    clock.advance(1);
  }
  CHECK(lines_of(captured.text()) == 360);
}

TEST_CASE("a kind of warning does not hold back another") {
  FakeClock clock;
  StrangerLog log("coordinator", clock);
  const LogCapture captured;
  log.warn("dropped a message", "x");
  log.warn("refused a site", "y");
  CHECK(lines_of(captured.text()) == 2);
}

TEST_CASE("a warning after ten quiet seconds is logged at once") {
  FakeClock clock;
  StrangerLog log("coordinator", clock);
  const LogCapture captured;
  log.warn("dropped a message", "first");
  clock.advance(10);
  log.warn("dropped a message", "second");
  CHECK(lines_of(captured.text()) == 2);
  CHECK_THAT(captured.text(), Catch::Contains("second"));
}

TEST_CASE("a stranger's text is printed in printable characters and cut") {
  const LogCapture captured;
  FakeClock clock;
  StrangerLog("coordinator", clock).warn("dropped", std::string(1 << 20, '\x07'));
  CHECK(captured.text().size() < 400);
  CHECK(captured.text().find('\x07') == std::string::npos);
}

}  // namespace
}  // namespace farstep::wan
