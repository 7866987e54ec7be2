#include "trainer/data/tokenizer_json/text_normalizer.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

TextNormalizer parsed(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return TextNormalizer(JsonValue(json, "normalizer"));
}

}  // namespace

TEST_CASE("the steps of a normalizer follow each other") {
  CHECK(parsed("null").is_identity());
  CHECK(parsed(R"({"type": "Sequence", "normalizers": []})").is_identity());
  const auto steps = parsed(R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
      {"type": "Prepend", "prepend": "_"}, {"type": "Replace", "pattern": {"String": "  "}, "content": "-"}]})");
  CHECK(steps.prepends());
  CHECK(steps("e\u0301   x", true) == "_\u00e9- x");
  CHECK(steps("a    ", false) == "a--");
  CHECK(steps("", true).empty());
}

TEST_CASE("white space is stripped at the ends, and matches are replaced") {
  const auto spaces = parsed(
      R"({"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": false, "strip_right": true},
      {"type": "Replace", "pattern": {"Regex": "\\A +| {2,}|x*\\z"}, "content": "-"}]})");
  CHECK(spaces("  a b   cxx \n\u3000", true) == "-a b-c-");
  CHECK(parsed(R"({"type": "Strip"})")(" \t a ", true) == "a");
  CHECK(parsed(R"({"type": "Strip"})")(" ", true).empty());
}

TEST_CASE("steps that double a text end at a limit in proportion to it, and not in memory") {
  const auto normalizer = [](int count, const std::string& step) {
    std::string steps = step;
    for (int i = 1; i < count; ++i) steps += ", " + step;
    return parsed(R"({"type": "Sequence", "normalizers": [)" + steps + "]}");
  };
  const std::string fixed = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  const std::string matches = R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": "aa"})";
  const std::string before = R"({"type": "Prepend", "prepend": ")" + std::string(100, 'a') + "\"}";
  for (const std::size_t size : {1, 100, 10'000}) {
    const std::string text(size, 'a');
    for (const auto& step : {fixed, matches}) {
      INFO(size << " bytes, " << step);
      CHECK(normalizer(5, step)(text, true) == std::string(32 * size, 'a'));
      CHECK_THROWS_WITH(normalizer(40, step)(text, true),
                        Catch::Contains("normalizer: makes more"));
    }
  }
  CHECK_THROWS_AS(normalizer(1, before)("a", true), DataError);
  CHECK(normalizer(1, before)(std::string(100, 'a'), true) == std::string(200, 'a'));
  const std::string long_content =
      R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")" +
      std::string(1 << 20, 'b') + "\"}";
  CHECK_THROWS_AS(normalizer(1, long_content)(std::string(1 << 20, 'a'), true), DataError);
  // The character of which compatibility makes most.
  std::string largest;
  for (int i = 0; i < 1000; ++i) largest += "\ufdfa";
  CHECK(normalizer(2, R"({"type": "NFKC"})")(largest, true).size() == 11 * largest.size());
}

// What each kind of step makes of a text that begins, and whether texts may be cut with it.
TEST_CASE("the rules of each step") {
  struct Case {
    std::string steps, text, expected;
    bool may_cut;
  };
  const std::string space_away =
      R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u0301"})";
  const Case cases[] = {
      {"", " a\n", " a\n", true},
      {R"({"type": "NFC"})", "e\u0301 \ufb01", "\u00e9 \ufb01", true},
      {R"({"type": "NFD"})", "\u00e9 \ufb01", "e\u0301 \ufb01", true},
      {R"({"type": "NFKC"})", "e\u0301 \ufb01", "\u00e9 fi", true},
      {R"({"type": "NFKD"})", "\u00e9 \ufb01", "e\u0301 fi", true},
      {R"({"type": "Prepend", "prepend": "_"})", "a", "_a", true},
      {R"({"type": "Replace", "pattern": {"String": "\u00e9"}, "content": "ee"})", "\u00e9a", "eea",
       true},
      {R"({"type": "Replace", "pattern": {"String": "aa"}, "content": "b"})", "aaa", "ba", false},
      {R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"})", "aa", "bb", false},
      {R"({"type": "Strip"})", " a ", "a", false},
      {R"({"type": "Strip", "strip_left": false, "strip_right": false})", " a ", " a ", false},
      {R"({"type": "NFC"}, )" + space_away, "a b", "a\u0301b", true},
      // The form joins what is in the space's place with the letter before it.
      {space_away + R"(, {"type": "NFC"})", "a b", "\u00e1b", false},
  };
  for (const auto& each : cases) {
    const auto steps = parsed(R"({"type": "Sequence", "normalizers": [)" + each.steps + "]}");
    CAPTURE(each.steps);
    CHECK(steps(each.text, true) == each.expected);
    CHECK(steps.may_cut() == each.may_cut);
  }
}

TEST_CASE("other normalizers are refused by name") {
  for (const auto* name : {"Lowercase", "StripAccents", "BertNormalizer", "ByteLevel"}) {
    CHECK_THROWS_WITH(parsed(fmt::format(R"({{"type": "{}"}})", name)),
                      Catch::Contains(fmt::format("normalizer: the normalizer {} is not", name)));
  }
  CHECK_THROWS_WITH(parsed(R"({"type": "Replace", "pattern": {"Regex": "\\w"}, "content": "b"})"),
                    Catch::Contains("normalizer.pattern: the regular expression"));
  for (const auto* table : {"a", "a===", "AAAA", "/////w=="}) {
    CHECK_THROWS_WITH(
        parsed(fmt::format(R"({{"type": "Precompiled", "precompiled_charsmap": "{}"}})", table)),
        Catch::StartsWith("normalizer.precompiled_charsmap: "));
  }
  CHECK_THROWS_AS(parsed(R"({"type": "Replace", "pattern": {"String": ""}, "content": "b"})"),
                  DataError);
}

}  // namespace farstep
