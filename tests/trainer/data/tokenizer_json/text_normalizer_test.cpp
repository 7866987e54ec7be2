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
