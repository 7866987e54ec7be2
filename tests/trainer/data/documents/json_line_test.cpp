#include "trainer/data/documents/json_line.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {

std::string text_in(const std::string& line, std::string_view name = "text") {
  const JsonLine json(line);
  INFO(line);
  REQUIRE_FALSE(json.fault());
  const auto member = json.member(name);
  REQUIRE(member.type == JsonType::kString);
  return text_of(member);
}

}  // namespace

TEST_CASE("what Python's json takes is JSON, whatever the library's parser says") {
  for (const std::string other :
       {"NaN", "Infinity", "-Infinity", "1e999", "-0", "0.5e-3", "1E+5", "null", "true", "false",
        "[]", "{}", "[ ]", "{ }", "[[[{\"text\": 1}]]]", "\"\\ud83d\"", "\"\xff\"",
        "{\"a\": [1, {}]}"}) {
    INFO(other);
    CHECK(text_in("{\"other\": " + other + ", \"text\": \"x\"}") == "x");
    CHECK(text_in(" {\"text\":\"x\",\t\"other\" :" + other + " } \r") == "x");
  }
  CHECK(text_in("{\"n\": " + std::string(5000, '7') + ", \"text\": \"x\"}") == "x");
  CHECK(text_in("{\"\xff\": 1, \"text\": \"x\"}") == "x");
}

TEST_CASE("what Python's json refuses is no JSON, with its place") {
  const std::pair<std::string, std::size_t> rows[] = {{"{\"a\": 01}", 7},
                                                      {"{\"a\": 1,}", 8},
                                                      {"{\"a\" 1}", 5},
                                                      {"{a: 1}", 1},
                                                      {"{\"a\": 1} x", 9},
                                                      {"[1,]", 3},
                                                      {"[1 2]", 3},
                                                      {"{\"a\": .5}", 6},
                                                      {"{\"a\": +1}", 6},
                                                      {"{\"a\": nul}", 6},
                                                      {"{\"a\": \"\\x\"}", 9},
                                                      {"{\"a\": \"\t\"}", 7},
                                                      {"{\"a\": 1.}", 7},
                                                      {"{\"a\": 1e}", 7},
                                                      {"{\"a\": [1}}", 8},
                                                      {"}", 0},
                                                      {"{\"a\": '1'}", 6},
                                                      {"{\"a\": nan}", 6},
                                                      {"\xef\xbb\xbf{}", 0},
                                                      {"{,}", 1},
                                                      {"{\"a\": \"\\u12g4\"}", 9}};
  for (const auto& [line, place] : rows) {
    INFO(line);
    const JsonLine json(line);
    REQUIRE(json.fault());
    CHECK(*json.fault() == place);
  }
}

TEST_CASE("a line that is cut anywhere is cut short, or JSON") {
  const std::string line =
      "{\"a\": [1.5e-3, null, -Infinity, {\"b\": \"\\u00e9\\n\"}], \"text\": \"\\ud83d\\ude00\"}";
  REQUIRE_FALSE(JsonLine(line).fault());
  for (std::size_t kept = 0; kept < line.size(); ++kept) {
    INFO(line.substr(0, kept));
    const std::string part = line.substr(0, kept);
    const JsonLine json(part);
    REQUIRE(json.fault());
    CHECK(*json.fault() == kept);
  }
}

TEST_CASE("a text is decoded, and half a surrogate pair becomes U+FFFD") {
  const std::pair<std::string, std::string> rows[] = {
      {"", ""},
      {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
      {"\\u00e9\\u20AC\\u0041", "\u00e9\u20acA"},
      {"\\ud83d\\ude00!", "\U0001f600!"},
      {"a\\ud83db", "a\ufffdb"},
      {"\\ude00", "\ufffd"},
      {"\\ud83d\\ud83d\\ude00", "\ufffd\U0001f600"},
      {"\\ud83d\\u0041", "\ufffdA"},
      {"\\ud83d\\n", "\ufffd\n"},
      {"\\ud83d", "\ufffd"}};
  for (const auto& [written, text] : rows) {
    INFO(written);
    CHECK(text_in("{\"text\": \"" + written + "\"}") == text);
  }
  CHECK(text_in(R"({"text": "a\u0000b"})") == std::string("a\0b", 3));
}

TEST_CASE("of members with one name the last one counts, however it is written") {
  CHECK(text_in(R"({"text": 1, "text": "x"})") == "x");
  CHECK(text_in(R"({"text": "y", "te\u0078t": "x"})") == "x");
  CHECK(JsonLine(R"({"text": "x", "text": 1})").member("text").type == JsonType::kNumber);
  CHECK(JsonLine(R"({"a": {"text": "x"}})").member("text").type == JsonType::kMissing);
  CHECK(JsonLine("[1]").type() == JsonType::kList);
}

TEST_CASE("the elements of a list are its own") {
  const std::string line = R"({"l": [ 1, "a]", [2, 3], {"b": [4]} ,null], "e": []})";
  const JsonLine json(line);
  const auto elements = elements_of(json.member("l"));
  REQUIRE(elements.size() == 5);
  CHECK(text_of(elements[1]) == "a]");
  CHECK(elements[2].raw == "[2, 3]");
  CHECK(elements[4].type == JsonType::kNull);
  CHECK(elements_of(json.member("e")).empty());
}

TEST_CASE("a line may be as deep as it is long") {
  const std::string line =
      "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + ", \"text\": \"x\"}";
  CHECK(text_in(line) == "x");
}

}  // namespace farstep
