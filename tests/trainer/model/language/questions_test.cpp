#include "trainer/model/language/questions.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"

using namespace farstep;

namespace {

std::vector<Question> read(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "q.jsonl", text);
  return read_questions(folder / "q.jsonl");
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

using Catch::Contains;

}  // namespace

TEST_CASE("what nobody reads of a question may be what Python's json takes") {
  const auto questions = read(
      "\xef\xbb\xbf{\"ctx\": \"a\\ud83d\", \"score\": NaN, \"id\": 1e999, \"x\": \"\xff\", "
      "\"endings\": [\"b\", \"c\"], \"label\": 0}\n");
  REQUIRE(questions.size() == 1);
  CHECK(questions[0].context == "a\ufffd");
  CHECK_THAT(refusal("{\"ctx\": \"\xff\", \"endings\": [\"b\", \"c\"], \"label\": 0}"),
             Contains("line 1: ctx: is not UTF-8"));
}

TEST_CASE("questions are read with what else their lines have") {
  const auto questions = read(
      "{\"ind\": 4, \"ctx\": \"A man\", \"ctx_a\": \"\", \"endings\": [\"runs\", \"é\"], "
      "\"label\": 1}\r\n"
      "\n"
      "{\"ctx\": \"\", \"endings\": [\"a\", \"b\", \"c\"], \"label\": \"2\"}");
  REQUIRE(questions.size() == 2);
  CHECK(questions[0].context == "A man");
  CHECK(questions[0].endings == std::vector<std::string>{"runs", "é"});
  CHECK(questions[0].right == 1);
  CHECK(questions[1].endings.size() == 3);
  CHECK(questions[1].right == 2);
}

TEST_CASE("a broken question is refused with its line and member") {
  const std::string good = "{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": 0}\n";
  CHECK_THAT(refusal(good + "{\"ctx\": "), Contains("line 2: is no JSON object"));
  CHECK_THAT(refusal("[1]"), Contains("line 1: is no JSON object"));
  CHECK_THAT(refusal("{\"endings\": [\"b\", \"c\"], \"label\": 0}"), Contains("ctx: is missing"));
  CHECK_THAT(refusal("{\"ctx\": \"a\", \"endings\": [\"b\"], \"label\": 0}"),
             Contains("endings: must be a list of two or more"));
  CHECK_THAT(refusal("{\"ctx\": \"a\", \"endings\": [\"b\", \"\"], \"label\": 0}"),
             Contains("endings: one is empty"));
  CHECK_THAT(refusal("{\"ctx\": \"a\", \"endings\": [\"b\", 3], \"label\": 0}"),
             Contains("endings: must be text"));
  for (const char* label : {"\"\"", "-1", "\"x\"", "0.5", "null"}) {
    CHECK_THAT(refusal(std::string("{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": ") +
                       label + "}"),
               Contains("label: must be the number of the right ending"));
  }
  CHECK_THAT(refusal("{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": 2}"),
             Contains("label: is 2, but there are 2 endings"));
  CHECK_THAT(refusal("\n"), Contains("q.jsonl: has no questions"));
}
