#include "heterogeneity/profile/forked.h"

#include <signal.h>
#include <unistd.h>

#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

void ignore(const std::string& /*text*/) {}

}  // namespace

TEST_CASE("Texts of a forked copy arrive in order and whole") {
  std::vector<std::string> sent{"", "one", "two\nlines", std::string(1 << 20, 'x'), "\"quoted\""};
  std::vector<std::string> received;
  const auto end = run_forked(
      [&](const Tell& tell) {
        for (const auto& text : sent) tell(text);
      },
      [&](const std::string& text) { received.push_back(text); });
  CHECK(end == ForkEnd::kDone);
  CHECK(received == sent);
}

TEST_CASE("What a forked copy changes stays in it") {
  int value = 1;
  std::string in_copy;
  run_forked(
      [&](const Tell& tell) {
        value = 2;
        tell(std::to_string(value));
      },
      [&](const std::string& text) { in_copy = text; });
  CHECK(value == 1);
  CHECK(in_copy == "2");
}

TEST_CASE("Errors of a forked copy are thrown here with their kind") {
  const auto fail = [](auto error) { run_forked([&](const Tell&) { throw error; }, ignore); };
  CHECK_THROWS_AS(fail(ConfigError("a")), ConfigError);
  CHECK_THROWS_AS(fail(DataError("b")), DataError);
  CHECK_THROWS_AS(fail(PeerError("", "c")), PeerError);
  CHECK_THROWS_AS(fail(InternalError("d")), InternalError);
  CHECK_THROWS_AS(fail(DivergenceError("f")), DivergenceError);
  CHECK_THROWS_AS(fail(std::runtime_error("e")), InternalError);
  CHECK_THROWS_WITH(fail(ConfigError("path \xff, \"quoted\"\nand two lines")),
                    Catch::Contains("\"quoted\"\nand two lines"));
}

TEST_CASE("A forked copy that is killed is told from one that ends") {
  std::string last;
  const auto end = run_forked(
      [](const Tell& tell) {
        tell("still here");
        raise(SIGKILL);
      },
      [&](const std::string& text) { last = text; });
  CHECK(end == ForkEnd::kKilled);
  CHECK(last == "still here");
}

TEST_CASE("A stop kills the forked copy and keeps what it told") {
  std::stop_source source;
  std::string last;
  const auto end = run_forked(
      [](const Tell& tell) {
        tell("working");
        while (true) ::pause();
      },
      [&](const std::string& text) {
        last = text;
        source.request_stop();
      },
      source.get_token());
  CHECK(end == ForkEnd::kStopped);
  CHECK(last == "working");
  // Asked for before the start, it is the same.
  CHECK(run_forked([](const Tell&) { ::pause(); }, ignore, source.get_token()) ==
        ForkEnd::kStopped);
}

TEST_CASE("Copies of copies end with their parents") {
  std::stop_source source;
  pid_t inner = 0;
  run_forked(
      [](const Tell& tell) {
        run_forked(
            [&](const Tell& inner_tell) {
              inner_tell(std::to_string(::getpid()));
              while (true) ::pause();
            },
            tell);
      },
      [&](const std::string& text) {
        inner = std::stoi(text);
        source.request_stop();
      },
      source.get_token());
  CHECK(inner > 0);  // and the pipe, which it held open as well, was closed
}

}  // namespace farstep::heterogeneity
