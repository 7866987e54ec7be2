// Strict reading, printing and help, on a struct with a field of every kind.
#include "trainer/config/json_fields.h"

#include <array>

#include "tests/support/catch.h"
#include "trainer/config/did_you_mean.h"

using namespace farstep;
using Catch::Contains;

namespace {

enum class Colour { kRed, kGreen };
std::span<const std::string_view> enum_names(Colour) {
  static constexpr std::array<std::string_view, 2> kNames{"red", "green"};
  return kNames;
}

struct Inner {
  int64_t depth = 3;
  std::string label;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("depth", depth, "how deep", in_range(1, 10));
    visit("label", label, "what it says", kRequired);
  }
};

struct Ticket {
  std::string token;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("token", token, "a token", hexadecimal(4));
  }
};

struct Everything {
  bool flag = true;
  int64_t count = 7;
  double share = 0.5;
  std::string text = "plain";
  Colour colour = Colour::kGreen;
  std::optional<int64_t> limit;
  std::optional<Inner> extra;
  std::vector<double> weights{1.0};
  std::vector<Inner> items;
  Inner nested{4, "given"};
  Json free = Json::object();

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("flag", flag, "a switch");
    visit("count", count, "a number", at_least(0));
    visit("share", share, "a share", above(0));
    visit("text", text, "a text");
    visit("colour", colour, "a colour");
    visit("limit", limit, "a limit", at_least(2));
    visit("extra", extra, "an extra");
    visit("weights", weights, "the weights", in_range(0, 3));
    visit("items", items, "the items", required(at_least(1)));
    visit("nested", nested, "a part");
    visit("free", free, "any JSON");
  }
};

const char* const kGood = R"({"items":[{"label":"x"}]})";

Everything read(const std::string& text) {
  return read_json<Everything>(Json::parse(text), "f.json");
}

// The message of the ConfigError for kGood with one member set to `value`.
std::string refusal(const std::string& member, const std::string& value) {
  auto json = Json::parse(kGood);
  json[member] = Json::parse(value);
  try {
    read_json<Everything>(json, "f.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("absent members keep their defaults and present ones are read") {
  const auto defaults = read(kGood);
  CHECK(defaults.flag);
  CHECK(defaults.count == 7);
  CHECK(defaults.colour == Colour::kGreen);
  CHECK_FALSE(defaults.limit.has_value());
  CHECK(defaults.items.at(0).depth == 3);
  CHECK(defaults.nested.label == "given");
  CHECK(defaults.free == Json::object());

  const auto given = read(R"({"flag":false,"count":0,"share":2,"text":"","colour":"red","limit":2,
      "extra":{"label":"e"},"weights":[],"items":[{"label":"a"},{"label":"b","depth":10}],
      "nested":{"label":"n"},"free":[null,{"a":1}]})");
  CHECK_FALSE(given.flag);
  CHECK(given.count == 0);
  CHECK(given.share == 2.0);
  CHECK(given.text.empty());
  CHECK(given.colour == Colour::kRed);
  CHECK(given.limit == 2);
  CHECK(given.extra->label == "e");
  CHECK(given.weights.empty());
  CHECK(given.items.at(1).depth == 10);
  CHECK(given.nested.depth == 4);
  CHECK(given.free.dump() == R"([null,{"a":1}])");
}

TEST_CASE("an unknown member is refused and the nearest name proposed") {
  const std::vector<std::string> names{"weight_decay", "peak_learning_rate"};
  CHECK(did_you_mean("peak_lr", names) == "; did you mean 'peak_learning_rate'?");
  CHECK(did_you_mean("lr", names).empty());
  CHECK(did_you_mean("rate", names).empty());
  CHECK(did_you_mean("rate", {}).empty());
  CHECK(refusal("cuont", "1") == "f.json: cuont: is not a known field; did you mean 'count'?");
  CHECK(refusal("zebra", "1") == "f.json: zebra: is not a known field");
  CHECK(refusal("nested", R"({"label":"x","detph":1})") ==
        "f.json: nested.detph: is not a known field; did you mean 'depth'?");
  CHECK_THAT(refusal("", "1"), Contains("is not a known field"));
  // One that stands a level too high is found where it belongs.
  CHECK(refusal("depth", "1") ==
        "f.json: depth: is not a known field; did you mean 'nested.depth'?");
}

TEST_CASE("a missing member is named with its path") {
  CHECK_THROWS_WITH(read("{}"), "f.json: items: is missing");
  CHECK(refusal("items", "[{\"label\":\"x\"},{}]") == "f.json: items[1].label: is missing");
  CHECK(refusal("nested", "{}") == "f.json: nested.label: is missing");
}

TEST_CASE("a value of the wrong type is refused with its path and value") {
  CHECK(refusal("flag", "1") == "f.json: flag: is 1; must be true or false");
  CHECK(refusal("count", "1.5") == "f.json: count: is 1.5; must be a whole number");
  CHECK(refusal("count", "\"1\"") == "f.json: count: is \"1\"; must be a whole number");
  CHECK(refusal("count", "true") == "f.json: count: is true; must be a whole number");
  CHECK(refusal("count", "18446744073709551615") ==
        "f.json: count: is 18446744073709551615; must be a whole number");
  CHECK(refusal("share", "\"a\"") == "f.json: share: is \"a\"; must be a number");
  CHECK(refusal("text", "3") == "f.json: text: is 3; must be a string");
  CHECK(refusal("colour", "\"blue\"") == "f.json: colour: is \"blue\"; must be one of red, green");
  CHECK(refusal("colour", "0") == "f.json: colour: is 0; must be one of red, green");
  CHECK(refusal("weights", "{}") == "f.json: weights: must be an array");
  CHECK(refusal("weights", "[1,\"a\"]") == "f.json: weights[1]: is \"a\"; must be a number");
  CHECK(refusal("nested", "[]") == "f.json: nested: must be an object");
  CHECK(refusal("extra", "3") == "f.json: extra: must be an object");
  CHECK_THROWS_WITH(read("[]"), "f.json: (top): must be an object");
}

TEST_CASE("a text that must be hexadecimal is refused if it is not, or has another length") {
  const auto read_ticket = [](const std::string& token) {
    return read_json<Ticket>(Json::parse("{\"token\":" + token + "}"), "f.json").token;
  };
  CHECK(read_ticket("\"09af\"") == "09af");
  for (const char* token : {"\"\"", "\"09AF\"", "\"09a\"", "\"09af0\"", "\"9af\\n\"", "\" 9af\""}) {
    CHECK_THROWS_WITH(
        read_ticket(token),
        fmt::format("f.json: token: is {}; must be 4 lower-case hexadecimal digits", token));
  }
}

TEST_CASE("a value out of range is refused with the range") {
  CHECK(refusal("count", "-1") == "f.json: count: is -1; must be at least 0");
  CHECK(refusal("share", "0") == "f.json: share: is 0; must be above 0");
  CHECK(refusal("limit", "1") == "f.json: limit: is 1; must be at least 2");
  CHECK(refusal("nested", R"({"label":"x","depth":11})") ==
        "f.json: nested.depth: is 11; must be from 1 to 10");
  CHECK(refusal("weights", "[1,2,3,4]") == "f.json: weights: has 4 entries; must have from 0 to 3");
  CHECK(refusal("items", "[]") == "f.json: items: has 0 entries; must have at least 1");
  CHECK(refusal("items", "[{\"label\":\"\"}]") == "f.json: items[0].label: must not be empty");
}

TEST_CASE("null is a value of optional and free fields only") {
  CHECK(refusal("free", "null").empty());
  CHECK(refusal("limit", "null").empty());
  CHECK(refusal("extra", "null").empty());
  for (const char* member :
       {"flag", "count", "share", "text", "colour", "weights", "items", "nested"}) {
    CHECK_THAT(refusal(member, "null"), Contains(std::string("f.json: ") + member + ": "));
  }
}

TEST_CASE("whole numbers keep all their digits") {
  for (const char* number : {"9223372036854775807", "9007199254740993"}) {
    const auto value = read(std::string(R"({"items":[{"label":"x"}],"count":)") + number + "}");
    CHECK(to_json(value)["count"].dump() == number);
  }
}

TEST_CASE("help has a row for every field with default and limits") {
  CHECK(help_text(list_fields<Everything>()) ==
        "  flag           a switch [true]\n"
        "  count          a number (at least 0) [7]\n"
        "  share          a share (above 0) [0.5]\n"
        "  text           a text [\"plain\"]\n"
        "  colour         a colour (red | green) [green]\n"
        "  limit          a limit (at least 2) [null]\n"
        "  extra          an extra [null]\n"
        "  extra.depth    how deep (from 1 to 10) [3]\n"
        "  extra.label    what it says [required]\n"
        "  weights        the weights (from 0 to 3) [[1.0]]\n"
        "  items          the items (at least 1) [required]\n"
        "  items[].depth  how deep (from 1 to 10) [3]\n"
        "  items[].label  what it says [required]\n"
        "  nested.depth   how deep (from 1 to 10) [4]\n"
        "  nested.label   what it says [required]\n"
        "  free           any JSON [{}]\n");
}

TEST_CASE("the file of an error is named where it is known") {
  const auto fails = [] { JsonPath{"", "plan.policy"}.fail("is odd"); };
  CHECK_THROWS_WITH(fails(), "plan.policy: is odd");
  CHECK_THROWS_WITH(in_file("run.json", fails), "run.json: plan.policy: is odd");
  CHECK(in_file("run.json", [] { return 7; }) == 7);
}
