#include "trainer/base/system/log.h"

#include <spdlog/spdlog.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

using namespace farstep;
using Catch::Contains;

TEST_CASE("the log goes to its file from its level on") {
  const TemporaryFolder folder;
  const auto before = spdlog::default_logger();
  set_up_log("north", "error");
  log_to_file(folder / "log");
  spdlog::warn("not shown");
  spdlog::error("shown {}", 42);
  spdlog::set_default_logger(before);
  const auto text = read_file(folder / "log");
  CHECK_THAT(text, Contains("error shown 42") && !Contains("not shown"));
}

TEST_CASE("the log goes to the newest file alone") {
  const TemporaryFolder folder;
  const auto before = spdlog::default_logger();
  set_up_log("north", "error");
  for (const char* name : {"first", "second"}) {
    log_to_file(folder / name);
    spdlog::error("for the {}", name);
  }
  spdlog::set_default_logger(before);
  CHECK_THAT(read_file(folder / "first"), !Contains("for the second"));
  CHECK_THAT(read_file(folder / "second"), Contains("for the second"));
}

// A site's message on leaving stood in the log of the others with its escapes, and began a line.
TEST_CASE("a text of others cannot pass for a line of the log, nor steer a terminal") {
  const TemporaryFolder folder;
  const auto before = spdlog::default_logger();
  set_up_log("north", "error");
  log_to_file(folder / "log");
  spdlog::error("it left: {}", "\x1b]0;owned\x07\n2026-01-01T00:00:00.000 info all is well\r");
  spdlog::set_default_logger(before);
  CHECK_THAT(read_file(folder / "log"),
             Catch::EndsWith("error it left: \\x1b]0;owned\\x07\n"
                             "    2026-01-01T00:00:00.000 info all is well\\x0d\n"));
}

TEST_CASE("a text of megabytes is cut in the log") {
  const TemporaryFolder folder;
  const auto before = spdlog::default_logger();
  set_up_log("", "error");
  log_to_file(folder / "log");
  spdlog::error("it left: {}", std::string(300'000, 'x'));
  spdlog::set_default_logger(before);
  const auto text = read_file(folder / "log");
  CHECK(text.size() < 17'000);
  CHECK_THAT(text, Contains("xxx... and 283625 bytes\n"));
}

TEST_CASE("an unknown level is a ConfigError and a log without a place a DataError") {
  const auto before = spdlog::default_logger();
  CHECK_THROWS_WITH(set_up_log("", "loud"), Contains("'loud' is not one of trace"));
  CHECK_THROWS_AS(log_to_file("/dev/null/log"), DataError);
  for (const char* level : {"trace", "debug", "info", "warning", "error", "off"}) {
    CHECK_NOTHROW(set_up_log("", level));
  }
  spdlog::set_default_logger(before);
}
