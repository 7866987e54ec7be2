#include "trainer/init/questions.h"

#include <sstream>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("an empty line is the default, and what cannot be taken is asked again") {
  std::istringstream answers("\n  spaced  \nbad\ngood\n\n\nlast\n");
  std::ostringstream screen;
  Questions questions(answers, screen);
  CHECK(questions.ask("Name", "mine") == "mine");
  CHECK(screen.str() == "Name [mine]: ");
  CHECK(questions.ask("Name", "mine") == "spaced");
  const auto check = [](const std::string& text) -> std::string {
    return text == "bad" ? "not that" : "";
  };
  CHECK(questions.ask("Which", "", false, check) == "good");
  CHECK_THAT(screen.str(), Contains("  not that\n"));
  CHECK(questions.ask("More", "", /*may_be_empty=*/true).empty());
  CHECK(questions.ask("Needed", "") == "last");
  CHECK_THROWS_AS(questions.ask("Gone", "x"), ConfigError);
}

TEST_CASE("yes and no are taken in full and in short") {
  std::istringstream answers("\ny\nno\nmaybe\nn\n");
  std::ostringstream screen;
  Questions questions(answers, screen);
  CHECK(questions.ask_yes("Keys", true));
  CHECK(questions.ask_yes("Keys", false));
  CHECK_FALSE(questions.ask_yes("Keys", true));
  CHECK_FALSE(questions.ask_yes("Keys", true));
  CHECK_THAT(screen.str(), Contains("answer yes or no"));
}

}  // namespace farstep
