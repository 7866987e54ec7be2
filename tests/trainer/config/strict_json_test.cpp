#include "trainer/config/strict_json.h"

#include "tests/support/catch.h"

namespace farstep {
using Catch::Contains;
using Catch::StartsWith;

namespace {

struct Message {
  std::string name;
  int64_t count = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "of something", kRequired);
    visit("count", count, "how many", in_range(0, 9));
  }
};

Message message_of(std::string_view text) {
  return read_untrusted<Message>(text, "the message", {.depth = 2, .members = 3, .values = 20});
}

// The error is one of data, whatever is wrong, and does not repeat the text.
std::string refusal_of(std::string_view text) {
  try {
    message_of(text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("text of others is read into the struct that it describes") {
  const auto message = message_of(R"({"name": "a", "count": 3})");
  CHECK(message.name == "a");
  CHECK(message.count == 3);
}

TEST_CASE("text that is not JSON is refused in printable words that are short") {
  const auto fault_of = [](const std::string& text) {
    try {
      parse_strictly<nlohmann::json>(text);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(fault_of("{\"a\": 1,\n}"),
             StartsWith("not valid JSON: parse error at line 2, column 1: ") && Contains("'}'"));
  CHECK_THAT(fault_of("{\"a\": \"\xc3\x28\"}"), Contains(R"(\xc3()"));
  CHECK(fault_of("[" + std::string(100'000, '9') + "e99999]").size() < 250);
  CHECK(fault_of("{\"a\": 1}").empty());
  // What is asked of JSON that does not have it.
  try {
    Json::object().at(std::string(1000, '\xff'));
    FAIL("it is there");
  } catch (const Json::exception& error) {
    CHECK_THAT(json_fault(error), StartsWith(R"(key '\xff)"));
    CHECK(json_fault(error).size() == 200);
  }
}

// The parser's own builder is the judge. It keeps members in their order, or sorted, by the type.
TEST_CASE("what is read is what the parser's own builder reads") {
  const auto check = [](const auto& none, const std::string& text) {
    using AnyJson = std::decay_t<decltype(none)>;
    const auto read = parse_strictly<AnyJson>(text);
    const auto expected = AnyJson::parse(text);
    CAPTURE(text);
    CHECK(read == expected);
    CHECK(read.dump() == expected.dump());
  };
  for (const std::string text :
       {"null", "true", "-1", "18446744073709551615", "-9223372036854775808", "1e308", "-0.0",
        R"("a\u00e9\n")", "[]", "{}", "[[],{},[{}]]",
        R"({"b":1,"a":[1,"x",{"c":null,"":2.5}],"aa":{}})",
        R"([{"a":1},{"a":2},{"a":{"a":{"a":[0]}}}])", " [ 1 , 2 ] "}) {
    check(Json(), text);
    check(nlohmann::json(), text);
  }
}

TEST_CASE("two members of one name are refused, whatever is between them") {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += fmt::format(R"("m{}":{{"a":1}},)", i * 7919 % 1000);
  for (const auto& text :
       {std::string(R"({"a":1,"a":1})"), std::string(R"([{"":{}, "":[]}])"),
        std::string(R"({"b":{"c":1,"d":{"a":2},"c":3}})"), "{" + many + R"("m500":1})"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_strictly<Json>(text), Contains("stands twice"));
    CHECK_THROWS_WITH(parse_strictly<nlohmann::json>(text), Contains("stands twice"));
  }
  CHECK_NOTHROW(parse_strictly<Json>("{" + many + R"("m":1})"));
}

TEST_CASE("text that need not be JSON is nothing, and JSON beyond a limit is refused by name") {
  CHECK(parse_if_json("a word", "it") == std::nullopt);
  CHECK(parse_if_json("1e999", "it") == std::nullopt);
  CHECK(parse_if_json("[1]", "it") == Json::array({1}));
  CHECK(parse_if_json("null", "it") == Json());
  CHECK_THROWS_WITH(parse_if_json(R"({"a":1,"a":1})", "it"), "it: member 'a' stands twice");
  CHECK_THROWS_WITH(parse_if_json("[[1]]", "it", {.depth = 1}), StartsWith("it: byte 1: "));
}

TEST_CASE("text of others that does not fit is refused as data, with its name and the place") {
  CHECK_THAT(refusal_of(""), StartsWith("the message is not JSON at byte 1"));
  CHECK_THAT(refusal_of(R"({"name": "a")"), StartsWith("the message is not JSON at byte "));
  CHECK_THAT(refusal_of("{\"name\": \"\xff\"}"), StartsWith("the message is not JSON at byte "));
  CHECK_THAT(refusal_of(R"({"name": "a", "count": 1e999})"), Contains("a number is too large"));
  CHECK_THAT(refusal_of(R"({"name": [[["a"]]]})"), StartsWith("the message is refused: "));
  CHECK_THAT(refusal_of(R"({"name": "a", "name": "b"})"), Contains("member 'name' stands twice"));
  const auto hostile = R"("\u001b\u202e)" + std::string(1000, 'x') + R"(": 1)";
  const auto refusal = refusal_of("{" + hostile + ", " + hostile + "}");
  CHECK_THAT(refusal, Contains(R"('\u001b\u202exxx)"));
  CHECK(refusal.size() < 160);
  CHECK(refusal_of(R"({"count": 3})") == "the message: name: is missing");
  CHECK_THAT(refusal_of(R"({"name": "a", "count": 10})"), StartsWith("the message: count: "));
  CHECK_THAT(refusal_of(R"({"name": "a", "other": 1})"), StartsWith("the message: "));
  CHECK_THAT(refusal_of("[]"), StartsWith("the message: "));
  CHECK(refusal_of("\x1b[31m").find('\x1b') == std::string::npos);
}

}  // namespace farstep
