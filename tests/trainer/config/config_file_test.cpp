#include "trainer/config/config_file.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/system/printable.h"

using namespace farstep;
using Catch::Contains;

namespace {

Json overridden(const std::string& json, const std::string& text) {
  auto result = Json::parse(json);
  apply_override(result, text);
  return result;
}

std::optional<std::string> difference(const std::string& here, const std::string& there) {
  return first_difference(Json::parse(here), Json::parse(there));
}

}  // namespace

TEST_CASE("a JSON file is loaded with its members in their order") {
  const TemporaryFolder folder;
  std::ofstream(folder / "f.json") << R"({"b":1,"a":{"z":[1,{"y":2}],"b":3}})";
  CHECK(load_json(folder / "f.json").dump() == R"({"b":1,"a":{"z":[1,{"y":2}],"b":3}})");
}

TEST_CASE("what is not JSON is a ConfigError with file and place") {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& text) {
    std::ofstream(folder / "f.json") << text;
    try {
      load_json(folder / "f.json");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* bad : {"", "{", "{\"a\":1,}", "{\"a\":01}", "{} {}", "{'a':1}", "// c\n{}",
                          "{\"a\":\"\xFF\"}", "{\"a\":1e999}", "{\"a\":NaN}"}) {
    INFO(bad);
    CHECK_THAT(refuse(bad), Contains("f.json: not valid JSON"));
  }
  // No byte of the file comes into a log that is no printable text, and not much of it.
  for (int byte = 1; byte < 256; ++byte) {
    for (const auto* place : {"\"x", "x", "{\"a", "[1e", "tru"}) {
      const auto text = place + std::string(1, static_cast<char>(byte)) + std::string(5000, 'y');
      const auto refusal = refuse(text);
      INFO(text.substr(0, 8));
      CHECK_THAT(refusal, Contains("f.json: not valid JSON: "));
      CHECK(refusal == printable(refusal, folder.path().string().size() + 300));
    }
  }
  CHECK_THAT(refuse("{\n\"a\": x}"), Contains("line 2, column 6"));
  CHECK_THAT(refuse(R"({"a":1,"b":2,"a":1})"), Contains("f.json: member 'a' stands twice"));
  CHECK_THAT(refuse(R"({"o":[{"a":{"c":1,"c":1}}]})"), Contains("member 'c' stands twice"));
  CHECK(refuse(R"({"a":{"b":1},"b":{"a":1},"c":[{"a":1},{"a":1}]})").empty());
  CHECK_THROWS_AS(load_json(folder / "none.json"), ConfigError);
  CHECK_THROWS_WITH(load_json(folder / "none.json"), Contains("none.json: cannot be read"));
}

TEST_CASE("an override replaces what stands at its path") {
  CHECK(overridden(R"({"a":{"b":1,"c":2}})", "a.b=5") == Json::parse(R"({"a":{"b":5,"c":2}})"));
  CHECK(overridden(R"({"a":[1,{"b":2}]})", "a[1].b=5") == Json::parse(R"({"a":[1,{"b":5}]})"));
  CHECK(overridden(R"({"a":[1,{"b":2}]})", "a.0=5") == Json::parse(R"({"a":[5,{"b":2}]})"));
  CHECK(overridden(R"({"a":[[1],[2]]})", "a[1][0]=5") == Json::parse(R"({"a":[[1],[5]]})"));
  CHECK(overridden(R"({"a":3})", "a.b.c=5") == Json::parse(R"({"a":{"b":{"c":5}}})"));
  CHECK(overridden("{}", "a.b=5") == Json::parse(R"({"a":{"b":5}})"));
  CHECK(overridden(R"({"a":null})", "a.b=5") == Json::parse(R"({"a":{"b":5}})"));
}

TEST_CASE("an override's value is JSON if it can be else a string") {
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, Json>>{{"1", 1},
                                                 {"1.5", 1.5},
                                                 {"true", true},
                                                 {"null", nullptr},
                                                 {"\"1\"", "1"},
                                                 {"[1,2]", {1, 2}},
                                                 {"{\"b\":1}", {{"b", 1}}},
                                                 {"tcp://127.0.0.1:7000", "tcp://127.0.0.1:7000"},
                                                 {"", ""},
                                                 {"x=y", "x=y"},
                                                 {"1 2", "1 2"}}) {
    INFO(text);
    CHECK(overridden("{}", "a=" + text) == Json{{"a", value}});
  }
}

TEST_CASE("a malformed override is refused as it was given") {
  for (const char* bad : {"", "a", "=1"}) {
    CHECK_THROWS_WITH(overridden("{}", bad), Contains("must be PATH=VALUE"));
  }
  CHECK_THROWS_WITH(overridden("{}", "a=\xFF"), Contains("is not UTF-8"));
  for (const char* bad : {"a[2]=1", "a.x=1", "a.=1", "a.-1=1", "a.99999999999999999999=1"}) {
    CHECK_THROWS_AS(overridden(R"({"a":[1,2]})", bad), ConfigError);
    CHECK_THROWS_WITH(overridden(R"({"a":[1,2]})", bad),
                      Contains(std::string("--set ") + bad) && Contains("array of 2"));
  }
}

TEST_CASE("equal documents have no difference whatever the order of members") {
  CHECK_FALSE(difference("{}", "{}"));
  CHECK_FALSE(difference(R"({"a":1,"b":[1,{"c":2}]})", R"({"b":[1,{"c":2}],"a":1})"));
  CHECK_FALSE(difference(R"({"s":[{"a":1,"b":2}]})", R"({"s":[{"b":2,"a":1}]})"));
  CHECK_FALSE(difference(R"({"a":1})", R"({"a":1.0})"));
}

TEST_CASE("the first difference is named with path and both values") {
  CHECK(difference(R"({"a":1,"b":{"c":2,"d":3}})", R"({"a":1,"b":{"c":2,"d":4}})") ==
        "b.d: 3 here, 4 there");
  CHECK(difference(R"({"b":1,"a":1})", R"({"a":2,"b":2})") == "b: 1 here, 2 there");
  CHECK(difference(R"({"s":[{"n":"x"},{"n":"y"}]})", R"({"s":[{"n":"x"},{"n":"z"}]})") ==
        R"(s[1].n: "y" here, "z" there)");
  CHECK(difference(R"({"s":[1]})", R"({"s":[1,2]})") == "s: [1] here, [1,2] there");
  CHECK(difference(R"({"o":{"a":1}})", R"({"o":{}})") == "o.a: 1 here, absent there");
  CHECK(difference("{}", R"({"a":null})") == "a: absent here, null there");
  CHECK(difference(R"({"a":null})", R"({"a":0})") == "a: null here, 0 there");
  CHECK(difference(R"({"a":{}})", R"({"a":[]})") == "a: {} here, [] there");
}
