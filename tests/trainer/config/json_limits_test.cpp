#include "trainer/config/json_limits.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/config/config_file.h"

namespace farstep {
using Catch::Contains;

namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("JSON text passes up to each limit and not beyond") {
  const JsonLimits limits{.depth = 3, .members = 2, .values = 6};
  for (const char* text : {"", "1", "[[[]]]", R"({"a":1,"b":{"c":[1]}})", "[1,2,3,4]",
                           "]]]],,,,,,,", R"(["[[[[[[{,,,,,,,)", R"("\"[[[[[[")"}) {
    CAPTURE(text);
    CHECK_NOTHROW(check_json_limits(text, limits));
  }
  CHECK_THROWS_WITH(check_json_limits("[[{\"a\":[", limits),
                    Contains("byte 7") && Contains("deep"));
  CHECK_THROWS_WITH(check_json_limits("{\"a\":1,\"b\":2,\"c\":3}", limits), Contains("members; 2"));
  CHECK_THROWS_WITH(check_json_limits("[1,2,3,4,5,6]", limits), Contains("values; 6"));
  // What comes after a nested value belongs to the outer one again.
  CHECK_THROWS_WITH(check_json_limits("{\"a\":[1,2],\"b\":2,\"c\":3}", limits),
                    Contains("members"));
}

// Copying, printing and comparing values is recursive, and would overflow the stack.
TEST_CASE("a config nested a million deep is refused with its file and byte") {
  const TemporaryFolder folder;
  for (const char* open : {"[", "{\"a\":"}) {
    write_file(folder / "deep.json", repeated(open, 1'000'000));
    CHECK_THROWS_WITH(load_json(folder / "deep.json"),
                      Contains("deep.json: byte") && Contains("nested too deeply; 64 at most"));
    Json json = Json::object();
    CHECK_THROWS_AS(apply_override(json, "a=" + repeated(open, 1'000'000)), ConfigError);
    CHECK(json.empty());
  }
}

// Members are searched for their names one by one: this file would take hours.
TEST_CASE("a config of a million members is refused") {
  const TemporaryFolder folder;
  write_file(folder / "wide.json", "{" + repeated("\"a\":1,", 1'000'000) + "\"b\":1}");
  CHECK_THROWS_WITH(load_json(folder / "wide.json"), Contains("too many members; 10000 at most"));
}

}  // namespace farstep
